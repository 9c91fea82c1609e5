import { expect, test } from "vitest";
import { complete, type Filtered, parse, passes } from "./filter";

const acme: Filtered = {
  name: "acme",
  app: "shop",
  customer: "Acme Corp",
  labels: { ring: "canary", tier: "gold plus" },
  release: 13,
  health: "unhealthy",
  words: ["live", "unhealthy", "behind", "waiting"],
};
const globex: Filtered = { name: "globex", app: "hello", customer: "globex", labels: {}, health: "healthy", words: ["new"] };

test.each<[string, boolean, boolean]>([
  ["", true, true],
  ["state:unhealthy", true, false],
  ["-state:unhealthy", false, true],
  ["health:healthy", false, true],
  ["label:ring=canary", true, false],
  ["label:ring", true, false],
  ["label:ring=stable", false, false],
  ['label:"tier=gold plus"', true, false],
  ['customer:"acme corp"', true, false],
  ["app:shop state:waiting", true, false],
  ["app:shop state:paused", false, false],
  ["release:<r14", true, false],
  ["release:<14", true, false],
  ["release:>=14", false, false],
  ["release:r13", true, false],
  ["release:none", false, true],
  ["release:soon", false, false],
  ["ACM", true, false],
  ["glob", false, true],
  ["-glob", true, false],
  ["colour:red", false, false],
  ["state:", true, true],
  ["state: glob", false, true],
  ['name "', false, false],
])("%s", (text, ofAcme, ofGlobex) => {
  const terms = parse(text);
  expect([passes(acme, terms), passes(globex, terms)]).toEqual([ofAcme, ofGlobex]);
});

const shown = (text: string) => complete(text, [acme, globex]).map((c) => c.shown);

test("an empty filter offers all keys", () => {
  expect(shown("")).toEqual(["state:", "health:", "label:", "app:", "customer:", "release:"]);
});

test("the beginning of a key is completed, also behind other terms and a minus", () => {
  expect(complete("app:shop -la", [acme])).toEqual([{ text: "app:shop -label:", shown: "-label:" }]);
});

test("values are those that installs have, with how many, and quoted where they must be", () => {
  expect(complete("label:", [acme, globex])).toEqual([
    { text: "label:ring=canary ", shown: "label:ring=canary", count: 1 },
    { text: 'label:"tier=gold plus" ', shown: 'label:"tier=gold plus"', count: 1 },
  ]);
  expect(shown("state:un")).toEqual(["state:unhealthy"]);
  expect(shown("release:")).toEqual(["release:none", "release:r13"]);
  expect(shown('customer:"acme')).toEqual(['customer:"Acme Corp"']);
});

test("what is whole already, text and unknown keys offer nothing", () => {
  expect(shown("state:unhealthy")).toEqual([]);
  expect(shown("acme ")).toEqual([]);
  expect(shown("colour:r")).toEqual([]);
});

import { expect, test } from "vitest";
import { type Graph, heightFor, nameOf, needsOf, pathOf, worthSaying } from "./shape";

test("a line bends around its corners", () => {
  expect(pathOf([])).toBe("");
  expect(
    pathOf([
      { x: 0, y: 0 },
      { x: 10, y: 0 },
    ]),
  ).toBe("M0 0L10 0");
  expect(
    pathOf([
      { x: 0, y: 0 },
      { x: 40, y: 0 },
      { x: 40, y: 40 },
    ]),
  ).toBe("M0 0L32 0Q40 0 40 8L40 40");
});

test("points on top of each other draw no NaN", () => {
  expect(
    pathOf([
      { x: 5, y: 5 },
      { x: 5, y: 5 },
      { x: 5, y: 5 },
    ]),
  ).not.toContain("NaN");
});

test("what a node needs is said with its reasons", () => {
  const graph = {
    nodes: [],
    layers: [],
    layout: { width: 0, height: 0, boxes: [], lines: [] },
    edges: [
      {
        from: "web",
        to: "db",
        reasons: [
          { kind: "reference", reference: "components.db.outputs.url", file: "components/web.toml", line: 7 },
          { kind: "dependencies", file: "components/web.toml" },
        ],
      },
      { from: "db", to: "sandbox", reasons: [{ kind: "order" }] },
    ],
  } satisfies Graph;
  const needs = needsOf(graph);
  expect(needs.get("web")).toEqual([
    {
      name: "db",
      reasons: ["it reads components.db.outputs.url (components/web.toml:7)", "it is written in dependencies (components/web.toml)"],
    },
  ]);
  expect(needs.get("db")).toEqual([{ name: "sandbox", reasons: ["the sandbox comes first"] }]);
  expect(needs.get("sandbox")).toBeUndefined();
});

test("what everything needs is said only where it is all", () => {
  const db = { name: "db", reasons: [] };
  const sandbox = { name: "sandbox", reasons: [] };
  expect(worthSaying([sandbox, db])).toEqual([db]);
  expect(worthSaying([sandbox])).toEqual([sandbox]);
  expect(worthSaying([])).toEqual([]);
});

test.each([
  ["web", { word: "healthy", detail: "r14 ↑1" }, "web: healthy, r14 ↑1"],
  ["db", { word: "absent", detail: "" }, "db: absent"],
  ["two\nlines", { word: "live" }, "two lines: live"],
])("%s is said in one line", (name, said, want) => {
  expect(nameOf({ name }, said)).toBe(want);
});

test.each([
  ["as high as it is", { width: 600, height: 300 }, 1200, 348],
  ["lower where it is drawn smaller", { width: 6000, height: 1500 }, 1200, 348],
  ["never so high that the page is nothing else", { width: 900, height: 9000 }, 1200, 460],
  ["never too low to move in", { width: 200, height: 44 }, 1200, 140],
  ["nothing", { width: 0, height: 0 }, 1200, 140],
])("a picture is %s", (_, layout, width, want) => {
  expect(heightFor(layout, width)).toBe(want);
});

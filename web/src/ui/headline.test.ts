import { expect, test } from "vitest";
import { headline } from "./headline";

const long = "word ".repeat(60).trim();

test.each([
  ["a short text is whole", "no such bucket", "no such bucket"],
  ["the first line", "it failed\nin the third step", "it failed"],
  [
    "up to the last colon that fits",
    `terraform apply of component worker: local-exec provisioner error (main.tf:43): Error running command '${long}'`,
    "terraform apply of component worker: local-exec provisioner error (main.tf:43)…",
  ],
  ["up to the end of a sentence", `The disk of the runner is full. ${long}`, "The disk of the runner is full…"],
  ["a colon at the very begin says nothing", `sh: ${"x".repeat(20)} ${"y".repeat(200)}`, `sh: ${"x".repeat(20)} ${"y".repeat(135)}…`],
  ["else at a word", long, `${"word ".repeat(31).trim()} word…`],
  ["one long word is cut", "x".repeat(300), `${"x".repeat(160)}…`],
])("%s", (_, text, want) => {
  expect(headline(text)).toBe(want);
});

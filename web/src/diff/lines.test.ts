import { expect, test } from "vitest";
import { lineDiff } from "./lines";

const brief = (before: string, after: string) =>
  lineDiff(before, after).map((l) => `${l.sign}${l.text} ${l.before ?? "-"}:${l.after ?? "-"}`);

test.each<[string, string, string, string[]]>([
  ["equal", "a\nb\n", "a\nb\n", [" a 1:1", " b 2:2"]],
  ["a changed line", "a\nb\n", "a\nc\n", [" a 1:1", "-b 2:-", "+c -:2"]],
  ["all new", "", "a\nb", ["+a -:1", "+b -:2"]],
  ["all gone", "a\n\nb", "", ["-a 1:-", "- 2:-", "-b 3:-"]],
])("%s", (_, before, after, want) => {
  expect(brief(before, after)).toEqual(want);
});

test("texts without anything in common are shown one after the other, and quickly", () => {
  const before = Array.from({ length: 5_000 }, (_, i) => `b${i}`).join("\n");
  const after = Array.from({ length: 5_000 }, (_, i) => `a${i}`).join("\n");
  const begin = performance.now();
  expect(lineDiff(before, after)).toHaveLength(10_000);
  expect(performance.now() - begin).toBeLessThan(2_000);
});

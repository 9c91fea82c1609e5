import { expect, test } from "vitest";
import { bars, criticalPath, neededBy, type Timed } from "./path";

const at = (second: number) => new Date(second * 1000).toISOString();
const step = (name: string, needs: string[], from?: number, to?: number, state = to === undefined ? "running" : "succeeded"): Timed => ({
  name,
  needs,
  state: from === undefined ? "pending" : state,
  ...(from === undefined ? {} : { started_at: at(from) }),
  ...(to === undefined ? {} : { finished_at: at(to) }),
});
const now = 100_000;

test.each<[string, Timed[], string[]]>([
  ["nothing began", [step("a", []), step("b", ["a"])], []],
  ["one after the other", [step("a", [], 0, 10), step("b", ["a"], 10, 20)], ["a", "b"]],
  ["the slower of two", [step("a", [], 0, 10), step("b", [], 0, 30), step("c", ["a", "b"], 30, 40)], ["b", "c"]],
  ["the end that nothing follows", [step("a", [], 0, 50), step("b", [], 0, 10), step("c", ["b"], 10, 20)], ["a"]],
  ["what is at it", [step("a", [], 0, 10), step("b", ["a"], 10), step("c", ["b"])], ["a", "b"]],
  ["of two at it, the longer", [step("a", [], 5), step("b", [], 2)], ["b"]],
  ["a skipped need holds nothing up", [step("a", [], 0, 10), step("b", [], 0, 90, "skipped"), step("c", ["a", "b"], 90, 99)], ["a", "c"]],
  ["a need that is not there", [step("b", ["gone"], 0, 10)], ["b"]],
  ["a circle, which cannot be, ends", [step("a", ["b"], 0, 10), step("b", ["a"], 0, 10)], ["b", "a"]],
])("the critical path: %s", (_, steps, want) => {
  expect(criticalPath(steps, now)).toEqual(want);
});

test("bars are parts of the whole, and what runs reaches to now", () => {
  const found = bars([step("a", [], 0, 50), step("b", ["a"], 50), step("c", ["b"])], now);
  expect(found.whole).toBe(100_000);
  expect([...found.bars]).toEqual([
    ["a", { from: 0, width: 0.5 }],
    ["b", { from: 0.5, width: 0.5 }],
  ]);
  expect(bars([step("a", [])], now).bars.size).toBe(0);
});

test("a clock that is behind makes no bar of less than nothing", () => {
  expect(bars([step("a", [], 200)], now).bars.get("a")).toEqual({ from: 0, width: 0 });
});

test("who needs a step", () => {
  expect(neededBy([step("a", []), step("b", ["a"]), step("c", ["a", "b"])], "a")).toEqual(["b", "c"]);
});

import { afterEach, expect, test, vi } from "vitest";
import { Pace, waitOf } from "./pace";

test.each([
  ["the first is done at once", [], 10_000, 0],
  ["one after a rest too", [1_000], 10_000, 0],
  ["one of the same burst waits for the rest of it", [9_990], 10_000, 40],
  ["a few in a while are done at once", [8_000, 8_700, 9_000, 9_400, 9_800], 10_000, 0],
  ["a burst is slowed down", [9_000, 9_100, 9_200, 9_300, 9_400, 9_500, 9_600, 9_900], 10_000, 600],
  ["until it is over", [1_000, 1_100, 1_200, 1_300, 1_400, 1_500, 1_600, 1_700], 10_000, 0],
  ["a storm is slow for as long as it lasts", Array.from({ length: 30 }, (_, i) => 50_000 + i * 650), 69_000, 550],
] satisfies [string, number[], number, number][])("%s", (_, done, now, want) => {
  expect(waitOf(done, now)).toBe(want);
});

afterEach(() => vi.useRealTimers());

test("a storm of a minute is done at most as often as it may, and its last is not lost", () => {
  vi.useFakeTimers();
  const acts: number[] = [];
  const pace = new Pace(() => acts.push(Date.now()));
  const began = Date.now();
  for (let i = 0; i < 6_000; i++) {
    pace.ask();
    vi.advanceTimersByTime(10);
  }
  const lastAsk = Date.now() - 10;
  vi.advanceTimersByTime(1_000);
  expect(acts[0]! - began).toBe(0);
  expect(acts.length).toBeLessThan(120);
  expect(acts.at(-1)).toBeGreaterThanOrEqual(lastAsk);
  pace.ask();
  pace.stop();
  const before = acts.length;
  vi.advanceTimersByTime(1_000);
  expect(acts.length).toBe(before);
});

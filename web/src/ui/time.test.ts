import { expect, test } from "vitest";
import { duration, relative } from "./time";

test.each([
  [0, "now"],
  [29_000, "now"],
  [31_000, "1 min ago"],
  [-31_000, "in 1 min"],
  [59 * 60_000, "59 min ago"],
  [90 * 60_000, "2 h ago"],
  [47 * 3600_000, "2 d ago"],
  [-30 * 86400_000, "in 30 d"],
])("%i ms away is %s", (away, want) => {
  expect(relative(1e12 - away, 1e12)).toBe(want);
});

test.each([
  [-5, "0 ms"],
  [850, "850 ms"],
  [1_234, "1.2 s"],
  [59_999, "59 s"],
  [250_000, "4 min 10 s"],
  [3 * 3600_000 + 5 * 60_000, "3 h 5 min"],
  [26 * 3600_000, "1 d 2 h"],
])("%i ms last %s", (ms, want) => {
  expect(duration(ms)).toBe(want);
});

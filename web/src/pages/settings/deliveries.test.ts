import { expect, test } from "vitest";
import { untilTried } from "./deliveries";

const now = Date.parse("2026-11-28T10:00:00Z");

test.each<[string, Parameters<typeof untilTried>[0], number | false]>([
  ["none", [], false],
  ["all are over", [{ state: "succeeded", attempts: 1 }], false],
  [
    "one is new",
    [
      { state: "succeeded", attempts: 1 },
      { state: "pending", attempts: 0 },
    ],
    2_000,
  ],
  ["one is tried again in a minute", [{ state: "pending", attempts: 2, next_at: "2026-11-28T10:01:00Z" }], 62_000],
  ["one is tried again in hours", [{ state: "pending", attempts: 9, next_at: "2026-11-28T16:00:00Z" }], 300_000],
  ["one is late", [{ state: "pending", attempts: 2, next_at: "2026-11-28T09:59:00Z" }], 2_000],
])("%s", (_, deliveries, want) => {
  expect(untilTried(deliveries, now)).toBe(want);
});

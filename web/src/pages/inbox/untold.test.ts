import { expect, test } from "vitest";
import { untilTold } from "./untold";

const now = Date.parse("2026-11-29T01:00:00Z");

test.each([
  { name: "no alerts", alerts: [], left: false },
  { name: "an old one", alerts: [{ opened_at: "2026-11-29T00:59:00Z" }], left: false },
  { name: "one that is held", alerts: [{}], left: false },
  { name: "one of now", alerts: [{ opened_at: "2026-11-29T01:00:00Z" }], left: 31_000 },
  { name: "the youngest counts", alerts: [{ opened_at: "2026-11-29T00:59:45Z" }, { opened_at: "2026-11-29T00:59:55Z" }], left: 26_000 },
  { name: "another clock", alerts: [{ opened_at: "2026-11-29T02:00:00Z" }], left: 31_000 },
])("$name", ({ alerts, left }) => expect(untilTold(alerts, now)).toBe(left));

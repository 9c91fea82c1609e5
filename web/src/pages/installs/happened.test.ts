import { expect, test } from "vitest";
import { type Entry, linesOf } from "./happened";

let seq = 100;
const entry = (kind: string, text: string, more: Partial<Entry> = {}): Entry =>
  ({ seq: seq--, kind, text, at: "2026-11-28T10:00:00Z", ...more }) as Entry;
const short = (entries: Entry[]) => linesOf(entries).map(({ tone, text, entries }) => [tone, text, entries.length]);

test("news, outcomes and verdicts look different", () => {
  expect(
    short([
      entry("release.created", "release 3 made"),
      entry("workflow.failed", "deploy failed"),
      entry("workflow.succeeded", "deploy succeeded"),
      entry("health.changed", "web is unhealthy"),
      entry("install.changed", "labels changed"),
      entry("drift.changed", "api drifted from what was deployed"),
      entry("runner.updated", "the update did not come up", { error: "no such file" }),
    ]),
  ).toEqual([
    ["news", "release 3 made", 1],
    ["bad", "deploy failed", 1],
    ["good", "deploy succeeded", 1],
    ["bad", "web is unhealthy", 1],
    ["news", "labels changed", 1],
    ["drift", "api drifted from what was deployed", 1],
    ["bad", "the update did not come up", 1],
  ]);
});

test("three that say the same at one time are one line", () => {
  const healthy = ["web", "api", "db"].map((name) => entry("health.changed", `${name} is healthy`));
  expect(short([...healthy, entry("health.changed", "cache is unhealthy")])).toEqual([
    ["good", "3 are healthy", 3],
    ["bad", "cache is unhealthy", 1],
  ]);
});

test("two are two, and an hour between them keeps three apart", () => {
  expect(short([entry("health.changed", "web is healthy"), entry("health.changed", "api is healthy")])).toHaveLength(2);
  const hours = ["10", "11", "12"].map((h) => entry("health.changed", "web is healthy", { at: `2026-11-28T${h}:00:00Z` }));
  expect(short(hours)).toHaveLength(3);
});

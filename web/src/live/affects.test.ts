import { expect, test } from "vitest";
import type { Key } from "~/api/client";
import { affects, type OrgEvent } from "./affects";

const proposed: OrgEvent = {
  seq: 7,
  kind: "change.proposed",
  install_id: "ins1",
  body: { install: "acme", app: "shop", workflow_id: "wfl1", step_id: "stp1", change_id: "chg1", resource_id: "res1", resource: "web" },
};

test.each<[string, Key, boolean]>([
  ["the list of changes", ["/changes", { query: { state: "proposed" } }], true],
  ["the change", ["/changes/{change}", { path: { change: "chg1" } }], true],
  ["another change", ["/changes/{change}", { path: { change: "chg2" } }], false],
  ["its install by name", ["/installs/{install}", { path: { install: "acme" } }], true],
  ["its install by id", ["/installs/{install}", { path: { install: "ins1" } }], true],
  ["another install", ["/installs/{install}", { path: { install: "globex" } }], false],
  ["its resource", ["/installs/{install}/resources/{resource}", { path: { install: "acme", resource: "web" } }], true],
  ["another resource of it", ["/installs/{install}/resources/{resource}", { path: { install: "acme", resource: "db" } }], false],
  ["its workflow", ["/workflows/{workflow}", { path: { workflow: "wfl1" } }], true],
  ["tokens", ["/tokens", {}], false],
])("a proposed change makes %s old: %#", (_, key, want) => {
  expect(affects(proposed, key)).toBe(want);
});

test("a kind of a newer service makes nothing old, and breaks nothing", () => {
  expect(affects({ seq: 1, kind: "moon.risen", body: {} }, ["/changes", {}])).toBe(false);
});

test("only the install whose health changed is another over time", () => {
  const changed = { seq: 1, kind: "health.changed", install_id: "ins_1", body: { install: "acme" } };
  expect(affects(changed, ["/health/history", { path: { install: "ins_1" } }])).toBe(true);
  expect(affects(changed, ["/health/history", { path: { install: "ins_2" } }])).toBe(false);
});

test("a pause of many installs at once is followed", () => {
  const paused = { seq: 1, kind: "install.paused", install_id: "ins_1", body: { install: "acme" } };
  expect(affects(paused, ["/bulk/{bulk}", { path: { bulk: "blk_1" } }])).toBe(true);
});

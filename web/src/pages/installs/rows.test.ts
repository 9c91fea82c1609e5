import { expect, test } from "vitest";
import { between, type Cell, components, grouped, groupings, type InstallStatus, rowOf, sorted } from "./rows";

function status(
  name: string,
  more: { install?: Partial<InstallStatus["install"]> } & Omit<Partial<InstallStatus>, "install"> = {},
): InstallStatus {
  return {
    standing: "live",
    pending: [],
    newest_release: { id: "rel_14", number: 14 },
    ...more,
    install: {
      id: `ins_${name}`,
      name,
      app: { id: "app_shop", name: "shop" },
      customer: { id: "cus_1", name },
      labels: {},
      health: "healthy",
      drifted: 0,
      open_alerts: 0,
      release: { id: "rel_14", number: 14 },
      created_at: "2026-11-01T00:00:00Z",
      ...more.install,
    } as InstallStatus["install"],
  };
}

const broken = rowOf(
  status("broken", { install: { health: "unhealthy", release: { id: "rel_12", number: 12 }, labels: { ring: "canary" } } }),
);
const waiting = rowOf(
  status("a10", { workflow: { id: "wfl", kind: "deploy", state: "waiting", created_by: "ci", created_at: "2026-11-01T00:00:00Z" } }),
);
const well = rowOf(status("a9", { install: { labels: { ring: "stable" } } }));
const drifted = rowOf(status("drifty", { install: { drifted: 2, pause: { at: "2026-11-01T00:00:00Z", by: "ada", reason: "" } } }));

test("a row knows how far it is behind and all words of its state", () => {
  expect([broken.behind, broken.words]).toEqual([2, ["live", "unhealthy", "behind"]]);
  expect(waiting.words).toEqual(["live", "healthy", "waiting"]);
  expect(drifted.words).toEqual(["live", "healthy", "paused", "drifted"]);
});

test("the worst comes first, and numbers in names count as numbers", () => {
  const all = [drifted, well, waiting, broken];
  expect(sorted(all, "health").map((r) => r.name)).toEqual(["broken", "a10", "drifty", "a9"]);
  expect(sorted(all, "name").map((r) => r.name)).toEqual(["a9", "a10", "broken", "drifty"]);
  expect(sorted(all, "release").map((r) => r.name)[0]).toBe("broken");
});

test("groups by a label keep those without it", () => {
  expect(groupings([broken, well])).toEqual(["app", "customer", "health", "release", "label:ring"]);
  expect(grouped([broken, well, drifted], "label:ring").map((g) => [g.name, g.rows.map((r) => r.name)])).toEqual([
    ["ring=(none)", ["drifty"]],
    ["ring=canary", ["broken"]],
    ["ring=stable", ["a9"]],
  ]);
  expect(grouped([broken, well], undefined)).toHaveLength(1);
});

test("columns are the sandbox and all components", () => {
  const cells = (...names: [Cell["kind"], string][]) => new Map(names.map(([kind, name]) => [name, { kind, name } as Cell]));
  expect(components([cells(["component", "web"], ["sandbox", "sandbox"]), cells(["component", "db"], ["component", "web"])])).toEqual([
    "sandbox",
    "db",
    "web",
  ]);
});

test("shift selects what lies between, in either direction", () => {
  const order = ["a", "b", "c", "d"];
  expect(between(order, "b", "d")).toEqual(["b", "c", "d"]);
  expect(between(order, "c", "a")).toEqual(["a", "b", "c"]);
  expect(between(order, "gone", "a")).toEqual(["a"]);
});

import { expect, test } from "vitest";
import { others } from "./joint";

type Waiting = Parameters<typeof others>[0][number];

const waits = (id: string, effect_digest?: string, state: Waiting["state"] = "proposed"): Waiting => ({
  id,
  install: { id: "ins", name: "acme" },
  workflow_id: "wfl",
  step_id: `stp_${id}`,
  kind: "deploy",
  state,
  created_at: "2026-11-29T00:00:00Z",
  ...(effect_digest && { effect_digest }),
});

test("one decides together on what was on the screen, as it was", () => {
  const looked = new Map([
    ["this", "sha256:0"],
    ["seen", "sha256:1"],
    ["moved", "sha256:2"],
  ]);
  const waiting = [
    waits("this", "sha256:0"),
    waits("seen", "sha256:1"),
    waits("moved", "sha256:3"),
    waits("unseen", "sha256:4"),
    waits("empty"),
    waits("done", "sha256:1", "approved"),
  ];
  expect(others(waiting, "this", looked).map(({ change, why }) => [change.id, why])).toEqual([
    ["seen", undefined],
    ["moved", "was planned again since you looked"],
    ["unseen", "look at it first"],
    ["empty", "has no effect to decide on"],
  ]);
});

test("no more than the API takes", () => {
  const many = Array.from({ length: 60 }, (_, i) => waits(`c${i}`, `sha256:${i}`));
  const all = others(many, "another", new Map(many.map((c) => [c.id, c.effect_digest!])));
  expect(all.filter((o) => !o.why)).toHaveLength(50);
  expect(all[50]?.why).toBe("only 50 can be decided at once");
});

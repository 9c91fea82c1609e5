import { expect, test } from "vitest";
import { decidable, type Standing } from "./standing";

const proposed: Standing = { state: "proposed", effect_digest: "sha256:1", decisions: [] };
const ada = { answer: "approve", actor: "ada", created_at: "2026-11-20T10:00:00Z", effect_digest: "sha256:1" };

test.each<[string, Standing, string | undefined, object]>([
  ["what was shown is proposed", proposed, "sha256:1", { can: true }],
  ["nothing was shown yet", proposed, undefined, { can: true }],
  ["another effect is proposed", { ...proposed, effect_digest: "sha256:2" }, "sha256:1", { can: false, moved: true }],
  ["no effect", { state: "proposed", decisions: [] }, undefined, { can: false, moved: false }],
  ["somebody was faster", { ...proposed, state: "approved", decisions: [ada] }, "sha256:1", { can: false, moved: false, by: "ada" }],
  ["it runs", { ...proposed, state: "executing", decisions: [ada] }, "sha256:1", { can: false, by: "ada" }],
  ["somebody denied", { ...proposed, state: "denied", decisions: [{ ...ada, answer: "deny" }] }, "sha256:1", { can: false, by: "ada" }],
  ["what is live moved", { ...proposed, state: "stale" }, "sha256:1", { can: false, moved: false }],
  ["a newer one replaced it", { ...proposed, state: "superseded" }, "sha256:1", { can: false, moved: false }],
  ["a state of a newer service", { ...proposed, state: "moonlit" }, "sha256:1", { can: false, moved: false, why: "It is moonlit." }],
  ["one of two approved", { ...proposed, decisions: [ada] }, "sha256:1", { can: true }],
])("%s", (_, change, shown, want) => {
  expect(decidable(change, shown)).toMatchObject(want);
});

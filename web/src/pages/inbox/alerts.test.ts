import { expect, test } from "vitest";
import { type Alert, about, says, shows } from "./alerts";

const held = (because: "too_early" | "muted" | "planned_work") => ({ because, until: "2026-11-28T10:00:00Z" });

test.each<[string, Pick<Alert, "state" | "held" | "kind">, boolean]>([
  ["an open one", { state: "open", kind: "unhealthy" }, true],
  ["one that planned work holds back", { state: "held", kind: "unhealthy", held: held("planned_work") }, true],
  ["a runner that is silent for a short time", { state: "held", kind: "runner_silent", held: held("too_early") }, true],
  ["a wait that is not long yet", { state: "held", kind: "waiting_too_long", held: held("too_early") }, false],
  ["what somebody muted", { state: "held", kind: "unhealthy", held: held("muted") }, false],
  ["what is over", { state: "closed", kind: "unhealthy" }, false],
])("%s", (_, alert, want) => {
  expect(shows(alert)).toBe(want);
});

test("a line says what is wrong, who is at it and what explains it", () => {
  expect(says({ text: "web is unhealthy" })).toBe("web is unhealthy");
  expect(says({ text: "nothing was heard of the runner since 2026-11-29T00:57:13Z" })).toBe("nothing was heard of the runner");
  expect(says({ text: "web is unhealthy", acknowledged_by: "ada", note: "the disk is being enlarged" })).toBe(
    "web is unhealthy · ada is at it: the disk is being enlarged",
  );
  expect(says({ text: "web is unhealthy", held: held("planned_work") })).toBe("web is unhealthy · work on it explains it so far");
});

test("its title names what it is about", () => {
  const install = { id: "ins_1", name: "acme" };
  expect(about({ install, subject: "component/web", kind: "unhealthy" })).toBe("acme · web");
  expect(about({ install, subject: "probe.worker.answers", kind: "unhealthy" })).toBe("acme · worker");
  expect(about({ install, subject: "changes", kind: "workflow_failed" })).toBe("acme · workflow failed");
  expect(about({ install, subject: "", kind: "objective" })).toBe("acme");
});

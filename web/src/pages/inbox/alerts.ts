// Which alerts stand in the inbox, and what a line says of one. Pure.
import type { Answer as Got } from "~/api/client";
import { headline } from "~/ui/headline";
import { wordOf } from "~/ui/State";

export type Alert = Got<"/alerts">["items"][number];

/**
 * Whether an alert is for people who look now: what is open, and what nobody is told of yet
 * because it is early or work is going on. What somebody muted is not, and neither is a wait
 * that is not long yet: what waits has a line of its own.
 */
export function shows({ state, held, kind }: Pick<Alert, "state" | "held" | "kind">): boolean {
  if (state === "open") return true;
  return state === "held" && held?.because !== "muted" && kind !== "waiting_too_long";
}

// The line has the time of its own.
const sinceItSelf = / since \d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** What is wrong, who is at it, and why nobody is told. */
export function says({ text, held, acknowledged_by: by, note }: Pick<Alert, "text" | "held" | "acknowledged_by" | "note">): string {
  return [
    headline(text.replace(sinceItSelf, "")),
    by && `${by} is at it${note ? `: ${note}` : ""}`,
    held && held.because === "planned_work" && "work on it explains it so far",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** What it is about, for the title of a line. */
export function about({ install, subject, kind }: Pick<Alert, "install" | "subject" | "kind">): string {
  if (kind === "workflow_failed" || kind === "runner_silent" || kind === "chain_unreported") return `${install.name} · ${wordOf(kind)}`;
  return subject ? `${install.name} · ${subject.replace(/^(component|check)\//, "").replace(/^probe\.([^.]+)\..*/, "$1")}` : install.name;
}

// The one way a state looks: glyph and word, with a colour that says nothing alone.
import type { ReactNode } from "react";
import { Theirs } from "./Theirs";
import { own } from "~/own";

export type Tone = "good" | "busy" | "bad" | "warn" | "unknown" | "ask" | "wait" | "drift" | "off" | "planned" | "news";

const colour: Record<Tone, string> = {
  good: "text-good",
  busy: "text-busy",
  bad: "text-bad",
  warn: "text-warn",
  unknown: "text-dim",
  ask: "text-ask",
  wait: "text-dim",
  drift: "text-warn",
  off: "text-dim",
  planned: "text-dim",
  news: "text-dim",
};

// Words of the API, and how each looks. One that is missing looks unknown, in its own word.
const tones: Record<string, Tone> = {
  healthy: "good",
  live: "good",
  applied: "good",
  approved: "good",
  succeeded: "good",
  released: "good",
  online: "good",
  no_change: "good",
  none: "good",
  closed: "good",
  running: "busy",
  changing: "busy",
  executing: "busy",
  preparing: "busy",
  provisioning: "busy",
  deprovisioning: "busy",
  building: "busy",
  unhealthy: "bad",
  failed: "bad",
  refused: "bad",
  denied: "bad",
  provision_failed: "bad",
  deprovision_failed: "bad",
  dead: "bad",
  open: "bad",
  degraded: "warn",
  uncertain: "warn",
  needs_attention: "warn",
  orphaned: "warn",
  stale: "unknown",
  unknown: "unknown",
  absent: "unknown",
  not_provisioned: "unknown",
  deprovisioned: "unknown",
  forgotten: "unknown",
  offline: "unknown",
  silent: "unknown",
  proposed: "ask",
  waiting: "ask",
  queued: "wait",
  pending: "wait",
  drifted: "drift",
  paused: "off",
  frozen: "off",
  off: "off",
  switched_off: "off",
  cancelled: "off",
  skipped: "off",
  superseded: "off",
  withdrawn: "off",
  disabled: "off",
  revoked: "off",
  rehearsed: "planned",
  planned: "planned",
};

/** The colour of a tone, where its glyph has no room. */
export const colourOf = (tone: Tone): string => colour[tone];

export const toneOf = (state: string): Tone => own(tones, state) ?? "unknown";

/** A state of the API as a person says it. */
export const wordOf = (state: string): string => state.replaceAll("_", " ");

function shape(tone: Tone): ReactNode {
  switch (tone) {
    case "good":
      return (
        <>
          <circle cx="8" cy="8" r="7" fill="currentColor" />
          <path d="m4.8 8.2 2.2 2.2 4.2-4.6" fill="none" stroke="var(--color-ground)" strokeWidth="1.8" />
        </>
      );
    case "bad":
      return (
        <>
          <circle cx="8" cy="8" r="7" fill="currentColor" />
          <path d="m5.4 5.4 5.2 5.2m0-5.2-5.2 5.2" fill="none" stroke="var(--color-ground)" strokeWidth="1.8" />
        </>
      );
    case "busy":
      return <path d="M8 1.75a6.25 6.25 0 1 1-6.25 6.25" fill="none" stroke="currentColor" strokeWidth="2" />;
    case "warn":
      return (
        <>
          <path d="M8 1.2 15.3 14.2H.7Z" fill="currentColor" />
          <path d="M8 5.6v4.2m0 1.4v1.4" stroke="var(--color-ground)" strokeWidth="1.6" />
        </>
      );
    case "ask":
      return (
        <path
          d="M5 8.5V3.4a1 1 0 0 1 2 0V7m0-3.9V2.4a1 1 0 0 1 2 0V7m0-3.6a1 1 0 0 1 2 0V8m0-2.6a1 1 0 0 1 2 0v4.1c0 3-1.8 5-4.6 5-2 0-3.2-.9-4.1-2.4L2.2 8.9c-.5-.9.7-1.7 1.4-1L5 9.5"
          fill="none"
          stroke="currentColor"
          strokeWidth="1.4"
          strokeLinecap="round"
        />
      );
    case "wait":
      return (
        <>
          <circle cx="8" cy="8" r="6.25" fill="none" stroke="currentColor" strokeWidth="1.5" />
          <path d="M8 4.5V8l2.4 1.6" fill="none" stroke="currentColor" strokeWidth="1.5" />
        </>
      );
    case "drift":
      return (
        <path
          d="M1.5 9.5c1.6-3.4 4-3.4 6.5-1.5s4.9 1.900 6.500-1.500"
          fill="none"
          stroke="currentColor"
          strokeWidth="2"
          strokeLinecap="round"
        />
      );
    case "off":
      return <path d="M5 3v10m6-10v10" stroke="currentColor" strokeWidth="2.4" />;
    case "planned":
      return <path d="m8 1.800 6.200 6.200L8 14.200 1.800 8Z" fill="none" stroke="currentColor" strokeWidth="1.5" />;
    case "news": // no state: something happened
      return <circle cx="8" cy="8" r="2.5" fill="currentColor" />;
    case "unknown":
      return <circle cx="8" cy="8" r="6.25" fill="none" stroke="currentColor" strokeWidth="1.5" strokeDasharray="2.400 2.500" />;
  }
}

/** The glyph alone, for where the word stands next to it or in a label. */
export function Glyph({ tone, size = 14 }: { tone: Tone; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 16 16"
      width={size}
      height={size}
      className={`inline-block shrink-0 ${colour[tone]} ${tone === "busy" ? "animate-turn" : ""}`}
    >
      {shape(tone)}
    </svg>
  );
}

interface StateProps {
  /** The state as the API says it. */
  state: string;
  /** Another word than the state's own. */
  word?: string;
  /** Where other words decide how it looks. */
  tone?: Tone;
  /** Only the glyph is shown; the word is in its label. */
  quiet?: boolean;
}

export function State({ state, word = wordOf(state), tone = toneOf(state), quiet = false }: StateProps) {
  return (
    <span className={`inline-flex items-center gap-1.5 whitespace-nowrap ${colour[tone]}`} title={quiet ? word : undefined}>
      <Glyph tone={tone} />
      <span className={quiet ? "sr-only" : ""}>
        <Theirs>{word}</Theirs>
      </span>
    </span>
  );
}

// Which other changes one decision may be for: those of the same workflow whose plan was on
// the screen, whole. Pure but for what this tab remembers.
import type { Answer } from "~/api/client";

type Summary = Answer<"/changes">["items"][number];

/** The effect that somebody looked at to its end, by the id of the change. */
export type Looked = ReadonlyMap<string, string>;

const lookedAt = new Map<string, string>();

/** What this tab showed whole. It is forgotten with the tab. */
export const lookedHere: Looked = lookedAt;

export function remember(change: string, digest: string): void {
  lookedAt.set(change, digest);
}

export interface Other {
  change: Summary;
  /** Why it cannot be part of the decision. */
  why?: string;
}

/** The API takes no more of them at once. */
const most = 50;

/** The other changes that wait, and whether the decision may be for them too. */
export function others(waiting: readonly Summary[], change: string, looked: Looked): Other[] {
  let room = most;
  return waiting
    .filter((c) => c.id !== change && c.state === "proposed")
    .map((c) => {
      const seen = looked.get(c.id);
      if (!c.effect_digest) return { change: c, why: "has no effect to decide on" };
      if (seen === undefined) return { change: c, why: "look at it first" };
      if (seen !== c.effect_digest) return { change: c, why: "was planned again since you looked" };
      return room-- > 0 ? { change: c } : { change: c, why: `only ${most} can be decided at once` };
    });
}

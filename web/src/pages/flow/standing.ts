// Says whether somebody can decide on a change now, on what they were shown. Pure.

/** What of a change says so. */
export interface Standing {
  state: string;
  effect_digest?: string;
  decisions: { answer: string; actor: string; created_at: string; effect_digest: string }[];
}

export type Decidable =
  | { can: true }
  /** The plan is another than the one that was shown. */
  | { can: false; moved: true; why: string }
  | { can: false; moved: false; why: string; by?: string; answer?: string; at?: string };

/** shown is the digest that was on the screen when somebody began to read. */
export function decidable(change: Standing, shown: string | undefined): Decidable {
  if (change.state === "proposed") {
    if (!change.effect_digest) return { can: false, moved: false, why: "The plan has no effect to decide on." };
    if (shown !== undefined && change.effect_digest !== shown)
      return { can: false, moved: true, why: "The plan was made again while you read: what you looked at is not what would be done." };
    return { can: true };
  }
  const last = change.decisions.at(-1);
  const decided = last ? { by: last.actor, answer: last.answer, at: last.created_at } : {};
  switch (change.state) {
    case "preparing":
      return { can: false, moved: false, why: "It is being planned." };
    case "approved":
    case "executing":
    case "applied":
      return { can: false, moved: false, why: `It is ${change.state === "executing" ? "being applied" : change.state}.`, ...decided };
    case "failed":
      return { can: false, moved: false, why: "It failed.", ...decided };
    case "denied":
      return { can: false, moved: false, why: "It was denied.", ...decided };
    case "stale":
      return { can: false, moved: false, why: "What is live moved since the plan, so it is planned again." };
    case "superseded":
      return { can: false, moved: false, why: "A newer change of the same resource replaced it." };
    case "withdrawn":
      return { can: false, moved: false, why: "It was withdrawn; nothing of it was done." };
    case "planned":
      return { can: false, moved: false, why: "Its workflow only shows plans." };
    case "no_change":
      return { can: false, moved: false, why: "Nothing changes, so there is nothing to decide." };
    default:
      return { can: false, moved: false, why: `It is ${change.state.replaceAll("_", " ")}.`, ...decided };
  }
}

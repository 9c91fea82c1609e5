// How a change stands when nobody can decide on it any more.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { reading } from "~/api/client";
import { Time } from "~/ui/Time";
import { Banner } from "./Banner";
import type { Change } from "./Change";
import type { Decidable } from "./standing";
import { Theirs } from "~/ui/Theirs";

const tones: Record<string, "warn" | "bad" | "good" | "off"> = {
  approved: "good",
  executing: "good",
  applied: "good",
  no_change: "good",
  denied: "bad",
  refused: "bad",
  failed: "bad",
  stale: "warn",
  uncertain: "warn",
};

export function Decisions({ change, standing }: { change: Change; standing: Extract<Decidable, { moved: false }> }) {
  // The plan that replaced this one is its step's newest.
  const step = useQuery(reading("/steps/{step}", { path: { step: change.step_id } }));
  const newer = step.data?.change && step.data.change.id !== change.id ? step.data.change : undefined;
  return (
    <Banner tone={tones[change.state] ?? "off"}>
      <Says standing={standing} />
      {newer && (
        <Link to="/changes/$change" params={{ change: newer.id }} className="font-medium text-link hover:underline">
          Open the newer plan ({newer.state.replaceAll("_", " ")})
        </Link>
      )}
      {change.replaces && (
        <Link to="/changes/$change" params={{ change: change.replaces }} className="text-link hover:underline">
          The plan before
        </Link>
      )}
    </Banner>
  );
}

const said: Record<string, string> = { approve: "approved it", deny: "denied it", plan_again: "had it planned again" };

/** Why nobody can decide, and who did. */
export function Says({ standing }: { standing: Extract<Decidable, { can: false }> }) {
  return (
    <span>
      {standing.why}
      {!standing.moved && standing.by && (
        <>
          {" "}
          <Theirs className="font-medium">{standing.by}</Theirs> {said[standing.answer ?? ""] ?? "decided"}{" "}
          {standing.at && <Time at={standing.at} />}.
        </>
      )}
    </span>
  );
}

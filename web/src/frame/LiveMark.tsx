import { useQueryClient } from "@tanstack/react-query";
import { useStanding } from "~/live/Live";
import { Glyph } from "~/ui/State";

/** Says whether what is on the screen is what is. */
export function LiveMark() {
  const standing = useStanding();
  const cache = useQueryClient();
  if (standing.is !== "stale") {
    return (
      <span role="status" className="inline-flex items-center gap-1.5 text-dim">
        <Glyph tone={standing.is === "live" ? "good" : "wait"} size={10} />
        <span className="hidden sm:inline">{standing.is === "live" ? "live" : "connecting"}</span>
      </span>
    );
  }
  return (
    <span role="status" className="inline-flex items-center gap-1.5 text-warn" title={standing.why}>
      <Glyph tone="warn" size={12} />
      <span className="whitespace-nowrap">
        stale since <span className="tabular-nums">{new Date(standing.since).toLocaleTimeString(undefined, { timeStyle: "short" })}</span>
      </span>
      <button type="button" className="text-link underline" onClick={() => void cache.invalidateQueries()}>
        Read again
      </button>
    </span>
  );
}

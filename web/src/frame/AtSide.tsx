import { Link } from "@tanstack/react-router";
import { keep, type Kept } from "./kept";

/** Opens a log or a change at the side, where it stays while one goes elsewhere. */
export function AtSide(what: Kept) {
  return (
    <Link
      to="."
      search={((now: Record<string, unknown>) => ({ ...now, side: keep(what) })) as never}
      resetScroll={false}
      title={`Keep this ${what.is} at the side while you go elsewhere`}
      className="text-link hover:underline"
    >
      At the side
    </Link>
  );
}

/** The way to a log: on its page, or at the side of this one. */
export function LogLinks({ stream }: { stream: string }) {
  return (
    <span className="inline-flex gap-3">
      <Link to="/logs/$stream" params={{ stream }} className="text-link hover:underline">
        Log
      </Link>
      <AtSide is="log" id={stream} />
    </span>
  );
}

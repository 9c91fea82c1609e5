import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { keep, type Kept } from "./kept";

/** Opens a log or a change at the side, where it stays while one goes elsewhere. */
export function AtSide({ children = "At the side", ...what }: Kept & { children?: ReactNode }) {
  return (
    <Link
      to="."
      search={((now: Record<string, unknown>) => ({ ...now, side: keep(what) })) as never}
      resetScroll={false}
      title={`Keep this ${what.is} at the side while you go elsewhere`}
      className="text-link hover:underline"
    >
      {children}
    </Link>
  );
}

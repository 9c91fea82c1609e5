import type { ReactNode } from "react";
import { Glyph } from "~/ui/State";

const grounds = { warn: "bg-warn-ground", bad: "bg-bad-ground", good: "bg-good-ground", off: "bg-raised" };

/** A line across a page about how its subject stands. */
export function Banner({ tone, children }: { tone: keyof typeof grounds; children: ReactNode }) {
  return (
    <div role="status" className={`mb-3 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md px-3 py-2 ${grounds[tone]}`}>
      <Glyph tone={tone} />
      {children}
    </div>
  );
}

import type { ReactNode } from "react";

/** A heading, a hairline and what belongs to it. */
export function Section({
  title,
  count,
  side,
  children,
  id,
}: {
  title: string;
  count?: number;
  side?: ReactNode;
  children: ReactNode;
  id?: string;
}) {
  return (
    <section aria-label={title} id={id} className="mb-6">
      <header className="flex min-h-9 flex-wrap items-center gap-x-2 gap-y-1 border-b border-line py-0.5">
        <h2 className="text-sm font-semibold">{title}</h2>
        {count !== undefined && <span className="text-xs text-dim tabular-nums">{count}</span>}
        <div className="ml-auto flex max-w-full min-w-0 flex-wrap items-center gap-2">{side}</div>
      </header>
      {children}
    </section>
  );
}

import type { ReactNode } from "react";

/** How what is typed into or chosen from looks. */
export const field = "h-9 rounded-md border border-line-strong bg-ground px-2";

/** Something to fill in, with what it is for. */
export function Field({ label, hint, children }: { label: ReactNode; hint?: ReactNode; children: ReactNode }) {
  return (
    <label className="flex flex-col gap-1">
      <span>
        {label}
        {hint && <span className="block text-dim">{hint}</span>}
      </span>
      {children}
    </label>
  );
}

import type { ReactNode } from "react";
import { Theirs } from "./Theirs";

/** What is known of a thing, a line each; what is missing is left out. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,auto)_1fr] gap-x-6 gap-y-1 py-2">
      {of
        .filter(([, value]) => value !== undefined && value !== null && value !== false && value !== "")
        .map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
    </dl>
  );
}

/** One line of a list of facts that has a form of its own. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-dim">{name}</dt>
      <dd className="min-w-0 break-words">{typeof children === "string" ? <Theirs>{children}</Theirs> : children}</dd>
    </>
  );
}

import { wordOf } from "~/ui/State";
import type { Change } from "./Change";

/** What it does, counted, each with its colour and sign. */
export function Tally({ change }: { change: Change }) {
  const plan = change.plan;
  if (!plan) return null;
  const parts = [
    ["delete", plan.delete, "text-bad"],
    ["replace", plan.replace, "text-bad"],
    ["create", plan.create, "text-good"],
    ["update", plan.update, "text-warn"],
  ] as const;
  const some = parts.filter(([, n]) => n > 0);
  if (some.length === 0) return <span className="text-dim">{plan.no_change ? "no change" : wordOf(change.kind)}</span>;
  return (
    <span className="flex flex-wrap gap-x-3 font-medium tabular-nums">
      {some.map(([verb, n, colour]) => (
        <span key={verb} className={colour}>
          {verb} {n.toLocaleString("en")}
        </span>
      ))}
    </span>
  );
}

// A change in few lines, as it stands at the side of another page: what it does and how it stands.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { reading } from "~/api/client";
import { objectsOf } from "~/diff/flatten";
import { signs } from "~/diff/signs";
import { own } from "~/own";
import { Answer } from "~/ui/Answer";
import { State, wordOf } from "~/ui/State";
import { Theirs } from "~/ui/Theirs";
import type { Change } from "./Change";
import { About } from "./ChangeSide";
import { Tally } from "./Tally";

const most = 50;

export default function ChangeBrief({ change }: { change: Change }) {
  const tree = useQuery({
    ...reading("/changes/{change}/plan/tree", { path: { change: change.id } }),
    structuralSharing: false,
    enabled: change.plan !== undefined,
  });
  const objects = useMemo(
    () => (tree.data ? objectsOf(tree.data.roots, tree.data.outputs).filter((o) => o.risk !== "unchanged") : []),
    [tree.data],
  );
  return (
    <>
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1 py-3">
        <State state={change.state} word={change.state === "proposed" ? "waits for a decision" : wordOf(change.state)} />
        <Tally change={change} />
      </p>
      {change.error && (
        <p className="pb-3 break-words text-bad">
          <Theirs>{change.error}</Theirs>
        </p>
      )}
      {change.plan && (
        <Answer of={tree}>
          {() => (
            <ul aria-label="What it does" className="border-t border-line">
              {objects.slice(0, most).map((o) => {
                const [sign, colour] = own(signs, o.action) ?? ["·", "text-dim"];
                return (
                  <li key={o.key} className="flex items-baseline gap-2 border-b border-line py-1">
                    <span className={`shrink-0 ${colour}`}>
                      <span aria-hidden="true" className="font-mono font-semibold">
                        {sign}
                      </span>{" "}
                      {o.action}
                    </span>
                    <Theirs className="min-w-0 font-mono text-xs break-all">{[...o.within, o.name].join(" / ")}</Theirs>
                  </li>
                );
              })}
              {objects.length > most && <li className="py-1 text-dim">and {objects.length - most} more in the review</li>}
            </ul>
          )}
        </Answer>
      )}
      <About change={change} />
    </>
  );
}

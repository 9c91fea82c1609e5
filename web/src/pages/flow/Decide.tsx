// The foot of a review: how much was looked at, a note, and the decision.
import { Problem } from "@berth/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { berth, reading } from "~/api/client";
import { useShortcuts } from "~/frame/shortcuts";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { State } from "~/ui/State";
import type { Change } from "./Change";
import { Says } from "./Decisions";
import type { Decidable } from "./standing";
import { useReadAgain } from "./useReadAgain";
import { readingRights, useWhyNot } from "./WorkflowActions";
import { late } from "~/late";

const Confirm = late(() => import("./ConfirmDecision"));

export type Then = "fail" | "skip" | "skip_dependents";
/** Other changes that the same answer is for. */
export type Also = { change_id: string; effect_digest: string }[];

interface DecideProps {
  change: Change;
  /** The digest of the effect that is on the screen. */
  shown: string | undefined;
  standing: Decidable;
  looked: number;
  total: number;
  /** The plan is on the screen. */
  ready: boolean;
  /** Shows the plan that is proposed now. */
  onTake: () => void;
}

export function Decide({ change, shown, standing, looked, total, ready, onTake }: DecideProps) {
  const not = useWhyNot(change.install.name);
  const [note, setNote] = useState("");
  const [asks, setAsks] = useState<"approve" | "deny">();
  const decide = useMutation({
    mutationFn: ({ answer, then, also }: { answer: "approve" | "deny"; then?: Then; also?: Also }) =>
      berth.POST("/changes/{change}/decisions", {
        params: { path: { change: change.id } },
        body: {
          answer,
          effect_digest: shown ?? "",
          ...(note.trim() ? { note: note.trim() } : {}),
          ...(answer === "deny" && then ? { then } : {}),
          ...(also && also.length > 0 ? { also } : {}),
        },
      }),
    onSuccess: () => setAsks(undefined),
    // Also when it was refused: somebody was faster, or the plan is another.
    onSettled: useReadAgain(),
  });

  const role = not("changes:decide");
  const refused = !standing.can ? standing.why : !ready ? "The plan is not on the screen yet." : role;
  const ask = (answer: "approve" | "deny") => {
    decide.reset();
    setAsks(answer);
  };
  useShortcuts({ a: refused ? undefined : () => ask("approve"), d: refused ? undefined : () => ask("deny") });
  // While the dialog is open, somebody else may decide: it goes, and the page says why.
  const open = asks && !refused;

  const waits = change.state === "proposed";
  if (!waits) return <After change={change} standing={standing} />;
  return (
    <footer
      aria-label="Decision"
      className="sticky bottom-14 z-[6] -mx-4 flex flex-wrap items-center gap-x-3 gap-y-2 border-t border-line bg-ground px-4 py-2.5 sm:bottom-0 sm:-mx-6 sm:px-6"
    >
      {!standing.can && standing.moved && (
        <p role="alert" className="flex basis-full flex-wrap items-center gap-2 font-medium text-warn">
          {standing.why} <Button onClick={onTake}>Look at the new plan</Button>
        </p>
      )}
      <p className="whitespace-nowrap tabular-nums" aria-live="polite">
        <span className={looked < total ? "font-medium text-warn" : "font-medium text-good"}>
          {looked.toLocaleString("en")} of {total.toLocaleString("en")}
        </span>{" "}
        <span className="text-dim">looked at</span>
      </p>
      {role && role !== readingRights ? (
        <p className="min-w-0 flex-1 text-dim">Deciding {role}.</p>
      ) : (
        <input
          aria-label="Note to keep with the decision"
          placeholder="Note, kept with the decision"
          value={note}
          maxLength={4096}
          onChange={(e) => setNote(e.target.value)}
          className="h-8 min-w-0 flex-1 basis-40 rounded-md border border-line-strong bg-ground px-2 max-sm:hidden"
        />
      )}
      <span className="hidden xl:inline">
        <Command>{`berth approve ${change.id}`}</Command>
      </span>
      <span className="ml-auto flex gap-2">
        <Button look="danger" refused={refused} onClick={() => ask("deny")}>
          Deny<span className="max-sm:hidden"> change</span>
          <Key>d</Key>
        </Button>
        <Button look="main" refused={refused} onClick={() => ask("approve")}>
          Approve<span className="max-sm:hidden"> change</span>
          <Key>a</Key>
        </Button>
      </span>
      {decide.error && !asks && <Refusal error={decide.error} />}
      <Suspense>
        {open && (
          <Confirm
            answer={asks}
            change={change}
            digest={shown ?? ""}
            looked={looked}
            total={total}
            note={note}
            onNote={setNote}
            busy={decide.isPending}
            error={decide.error}
            onClose={() => setAsks(undefined)}
            onDecide={(more) => decide.mutate({ answer: asks, ...more })}
          />
        )}
      </Suspense>
    </footer>
  );
}

const Key = ({ children }: { children: string }) => (
  <kbd aria-hidden="true" className="hidden rounded-md border border-current px-1 font-mono text-xs opacity-70 sm:inline">
    {children}
  </kbd>
);

/** Why a decision was not taken. */
export function Refusal({ error }: { error: unknown }) {
  const problem = error instanceof Problem ? error : undefined;
  const text =
    problem?.code === "effect_changed"
      ? "Nothing was decided: a plan is another than the one that was on your screen."
      : problem?.code === "not_proposed"
        ? "Nothing was decided: the change no longer waits for a decision."
        : (problem?.detail ?? (error instanceof Error ? error.message : String(error)));
  return (
    <p role="alert" className="basis-full font-medium break-words text-bad">
      {text} {problem?.remedy && <span className="font-normal text-dim">{problem.remedy}</span>}
    </p>
  );
}

/** After the decision: what else waits. */
function After({ change, standing }: { change: Change; standing: Decidable }) {
  const waiting = useQuery(reading("/changes", { query: { workflow: change.workflow_id, state: "proposed" } }));
  const next = waiting.data?.items.find((c) => c.id !== change.id);
  return (
    <footer
      aria-label="Decision"
      className="sticky bottom-14 z-[6] -mx-4 mt-6 flex flex-wrap items-center gap-x-4 gap-y-1 border-t border-line bg-ground px-4 py-3 sm:bottom-0 sm:-mx-6 sm:px-6"
    >
      <State state={change.state} />
      {!standing.can && (
        <span role="status" className="min-w-0">
          <Says standing={standing} />
        </span>
      )}
      <Link to="/workflows/$workflow" params={{ workflow: change.workflow_id }} className="text-link hover:underline">
        Follow its workflow
      </Link>
      {next && (
        <Link to="/changes/$change" params={{ change: next.id }} className="text-link hover:underline">
          Next decision: {next.resource?.name ?? next.kind}
        </Link>
      )}
    </footer>
  );
}

// Asks once more, with what is decided in one look.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { reading } from "~/api/client";
import { counts } from "~/ui/counts";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Dialog } from "~/ui/Dialog";
import type { Change } from "./Change";
import { type Also, Refusal, type Then } from "./Decide";
import { lookedHere, type Other, others } from "./joint";
import { Theirs } from "~/ui/Theirs";

interface ConfirmProps {
  answer: "approve" | "deny";
  change: Change;
  digest: string;
  looked: number;
  total: number;
  note: string;
  onNote: (note: string) => void;
  busy: boolean;
  error: unknown;
  onClose: () => void;
  onDecide: (more: { then?: Then; also?: Also }) => void;
}

const thens: [Then, string, string][] = [
  ["fail", "The step fails", "Nothing new begins in the workflow."],
  ["skip", "Skip the step", "What needs it goes on."],
  ["skip_dependents", "Skip the step and what needs it", "The rest goes on."],
];
const flags: Record<Then, string> = { fail: "", skip: " --skip", skip_dependents: " --skip-dependents" };

export default function ConfirmDecision({
  answer,
  change,
  digest,
  looked,
  total,
  note,
  onNote,
  busy,
  error,
  onClose,
  onDecide,
}: ConfirmProps) {
  const [then, setThen] = useState<Then>("fail");
  const waiting = useQuery(reading("/changes", { query: { workflow: change.workflow_id, state: "proposed", limit: 200 } }));
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const rest = answer === "approve" ? others(waiting.data?.items ?? [], change.id, lookedHere) : [];
  const joined = rest.filter((o) => !o.why && picked.has(o.change.id)).map((o) => o.change);
  const name = `${change.install.name} · ${change.resource?.name ?? change.kind}`;
  const kept = note ? ` --note ${quoted(note)}` : "";
  const command =
    answer === "approve"
      ? [change, ...joined].map(({ id }) => `berth approve ${id}${kept}`).join(" && ")
      : `berth deny ${change.id}${flags[then]}${kept}`;
  return (
    <Dialog title={answer === "approve" ? "Approve change" : "Deny change"} onClose={onClose}>
      <form
        className="flex min-h-0 flex-col gap-3 overflow-auto p-4"
        onSubmit={(e) => {
          e.preventDefault();
          onDecide(answer === "deny" ? { then } : { also: joined.map((c) => ({ change_id: c.id, effect_digest: c.effect_digest ?? "" })) });
        }}
      >
        <p>
          <Theirs className="font-medium">{name}</Theirs>
          {change.plan && <span className="text-dim">: {counts(change.plan)}</span>}
        </p>
        {looked < total && (
          <p className="font-medium text-warn">
            {(total - looked).toLocaleString("en")} of {total.toLocaleString("en")} were not on your screen yet.
          </p>
        )}
        {answer === "deny" && (
          <fieldset className="flex flex-col gap-1.5">
            <legend className="mb-1 text-dim">And then</legend>
            {thens.map(([value, label, text]) => (
              <label key={value} className="flex items-baseline gap-2">
                <input type="radio" name="then" value={value} checked={then === value} onChange={() => setThen(value)} />
                <span>
                  {label} <span className="text-dim">{text}</span>
                </span>
              </label>
            ))}
          </fieldset>
        )}
        {rest.length > 0 && <Rest of={rest} picked={picked} onPick={setPicked} onLeave={onClose} />}
        <label className="flex flex-col gap-1">
          <span className="text-dim">Note, kept with the decision</span>
          <textarea
            rows={2}
            value={note}
            maxLength={4096}
            onChange={(e) => onNote(e.target.value)}
            className="rounded-md border border-line-strong bg-ground px-2 py-1"
          />
        </label>
        <p className="text-xs text-dim">
          You decide on the effect <code className="font-mono break-all">{digest}</code>
          {joined.map((c) => (
            <span key={c.id}>
              , for <Theirs>{nameOf(c)}</Theirs> on <code className="font-mono break-all">{c.effect_digest}</code>
            </span>
          ))}
          {joined.length > 0 ? ": on all of them or on none." : " and on no other."}
        </p>
        {error ? <Refusal error={error} /> : null}
        <div className="flex flex-wrap items-center gap-2">
          <Command>{command}</Command>
          <span className="ml-auto flex gap-2">
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" look={answer === "approve" ? "main" : "danger"} disabled={busy} autoFocus>
              {answer === "deny" ? "Deny change" : joined.length > 0 ? `Approve ${joined.length + 1} changes` : "Approve change"}
            </Button>
          </span>
        </div>
      </form>
    </Dialog>
  );
}

const nameOf = (c: Other["change"]) => c.resource?.name ?? c.kind;

interface RestProps {
  of: readonly Other[];
  picked: ReadonlySet<string>;
  onPick: (ids: ReadonlySet<string>) => void;
  /** One goes to look at another change. */
  onLeave: () => void;
}

/** What else of the workflow waits: what was on the screen may be part of this decision. */
function Rest({ of, picked, onPick, onLeave }: RestProps) {
  return (
    <fieldset className="flex max-h-48 flex-col gap-1.5 overflow-auto">
      <legend className="mb-1 text-dim">Also waiting in this workflow</legend>
      {of.map(({ change: c, why }) => (
        <div key={c.id} className="flex flex-wrap items-baseline gap-x-2">
          <label className="flex min-w-0 items-baseline gap-2">
            <input
              type="checkbox"
              checked={!why && picked.has(c.id)}
              disabled={why !== undefined}
              onChange={(e) => onPick(new Set(e.target.checked ? [...picked, c.id] : [...picked].filter((id) => id !== c.id)))}
              className="accent-(--color-accent)"
            />
            <span className="min-w-0">
              <Theirs className="font-medium">{nameOf(c)}</Theirs> <span className="text-dim">{counts(c.counts)}</span>
            </span>
          </label>
          {why && (
            <Link to="/changes/$change" params={{ change: c.id }} onClick={onLeave} className="text-xs text-link hover:underline">
              {why}
            </Link>
          )}
        </div>
      ))}
    </fieldset>
  );
}

/** A word of a command line, quoted so that a shell takes it as it is. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

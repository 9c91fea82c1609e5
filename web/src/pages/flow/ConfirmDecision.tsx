// Asks once more, with what is decided in one look.
import { useState } from "react";
import { counts } from "~/ui/counts";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Dialog } from "~/ui/Dialog";
import type { Change } from "./Change";
import { Refusal, type Then } from "./Decide";
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
  onDecide: (then?: Then) => void;
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
  const name = `${change.install.name} · ${change.resource?.name ?? change.kind}`;
  const command =
    (answer === "approve" ? `berth approve ${change.id}` : `berth deny ${change.id}${flags[then]}`) +
    (note ? ` --note ${quoted(note)}` : "");
  return (
    <Dialog title={answer === "approve" ? "Approve change" : "Deny change"} onClose={onClose}>
      <form
        className="flex min-h-0 flex-col gap-3 overflow-auto p-4"
        onSubmit={(e) => {
          e.preventDefault();
          onDecide(answer === "deny" ? then : undefined);
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
          You decide on the effect <code className="font-mono break-all">{digest}</code> and on no other.
        </p>
        {error ? <Refusal error={error} /> : null}
        <div className="flex flex-wrap items-center gap-2">
          <Command>{command}</Command>
          <span className="ml-auto flex gap-2">
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" look={answer === "approve" ? "main" : "danger"} disabled={busy} autoFocus>
              {answer === "approve" ? "Approve change" : "Deny change"}
            </Button>
          </span>
        </div>
      </form>
    </Dialog>
  );
}

/** A word of a command line, quoted so that a shell takes it as it is. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

// Asks before something is done, and shows the command that does the same.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Trouble } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Dialog } from "~/ui/Dialog";
import { useReadAgain } from "./useReadAgain";

export interface ActProps {
  title: string;
  text: string;
  verb: string;
  command: string;
  danger?: boolean;
  /** A note can be kept with it. */
  notes?: boolean;
  run: (note: string) => Promise<unknown>;
  onClose: () => void;
}

export default function ConfirmAct({ title, text, verb, command, danger = false, notes = false, run, onClose }: ActProps) {
  const [note, setNote] = useState("");
  const act = useMutation({
    mutationFn: () => run(note.trim()),
    onSuccess: onClose,
    onSettled: useReadAgain(),
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="flex min-h-0 flex-col gap-3 overflow-auto p-4"
        onSubmit={(e) => {
          e.preventDefault();
          act.mutate();
        }}
      >
        <p>{text}</p>
        {notes && (
          <label className="flex flex-col gap-1">
            <span className="text-dim">Note</span>
            <textarea
              rows={2}
              value={note}
              maxLength={4096}
              onChange={(e) => setNote(e.target.value)}
              className="rounded-md border border-line-strong bg-ground px-2 py-1"
            />
          </label>
        )}
        {act.error && <Trouble error={act.error} />}
        <div className="flex flex-wrap items-center gap-2">
          <Command>{command}</Command>
          <span className="ml-auto flex gap-2">
            <Button onClick={onClose}>Close</Button>
            <Button type="submit" look={danger ? "danger" : "main"} disabled={act.isPending} autoFocus>
              {verb}
            </Button>
          </span>
        </div>
      </form>
    </Dialog>
  );
}

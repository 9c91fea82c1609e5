import { type ReactNode, useState } from "react";
import { Trouble } from "./Answer";
import { Button } from "./Button";
import { Command } from "./Copy";
import { Dialog } from "./Dialog";

interface ConfirmProps {
  title: string;
  /** What happens, in a sentence. */
  children: ReactNode;
  /** The verb of the button. */
  verb: string;
  /** What destroys asks for this name. */
  name?: string;
  command?: string;
  act: () => Promise<unknown>;
  onClose: () => void;
}

/** Asks before something that cannot be taken back. Load it lazily: it brings the dialog. */
export default function Confirm({ title, children, verb, name, command, act, onClose }: ConfirmProps) {
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    try {
      await act();
      onClose();
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="flex flex-col gap-3 p-4"
        onSubmit={(e) => {
          e.preventDefault();
          void submit();
        }}
      >
        <div>{children}</div>
        {name !== undefined && (
          <label className="flex flex-col gap-1">
            <span>
              Type <b className="font-mono">{name}</b> to confirm
            </span>
            <input
              value={typed}
              onChange={(e) => setTyped(e.target.value)}
              autoComplete="off"
              spellCheck={false}
              className="h-9 rounded-md border border-line-strong bg-ground px-2 font-mono"
            />
          </label>
        )}
        {error !== undefined && <Trouble error={error} />}
        <div className="flex flex-wrap items-center gap-2">
          <Button
            look={name === undefined ? "main" : "danger"}
            type="submit"
            disabled={busy}
            refused={name !== undefined && typed !== name ? `type ${name} first` : undefined}
          >
            {verb}
          </Button>
          <Button onClick={onClose}>Cancel</Button>
          {command && <Command>{command}</Command>}
        </div>
      </form>
    </Dialog>
  );
}

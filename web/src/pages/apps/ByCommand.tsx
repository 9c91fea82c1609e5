import type { ReactNode } from "react";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Dialog } from "~/ui/Dialog";

interface ByCommandProps {
  title: string;
  /** What the command does, and why no button does it. */
  children: ReactNode;
  command: string;
  onClose: () => void;
}

/** Says how something is done that a page never does: what needs a key that is in no browser. Load it lazily. */
export default function ByCommand({ title, children, command, onClose }: ByCommandProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="flex flex-col gap-3 p-4">
        <div>{children}</div>
        <Command wrap>{command}</Command>
        <div>
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  );
}

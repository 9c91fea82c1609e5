import { Dialog } from "~/ui/Dialog";

const keys: [keys: string, does: string][] = [
  ["Ctrl K or ⌘ K", "search everything, run an action"],
  ["g i", "inbox"],
  ["g s", "installs"],
  ["g a", "apps"],
  ["g r", "runners"],
  ["g e", "settings"],
  ["j k", "next, previous row"],
  ["↵", "open the row"],
  ["e", "acknowledge an alert of the inbox"],
  ["/", "filter"],
  ["a d", "approve, deny (you confirm it)"],
  ["n p", "next, previous change in a review"],
  ["f", "next failure"],
  ["l", "logs"],
  ["Esc", "close what is open"],
  ["?", "these keys"],
];

export default function Keys({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1.5 overflow-auto p-4">
        {keys.map(([key, does]) => (
          <div key={key} className="contents">
            <dt>
              <kbd className="rounded-md border border-line bg-raised px-1.5 font-mono text-xs">{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

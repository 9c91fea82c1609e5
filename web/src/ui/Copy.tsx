import { useState } from "react";
import { Theirs } from "./Theirs";

/** Puts a text into the clipboard and says so. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button
      type="button"
      onClick={() => void copy()}
      title={label}
      aria-label={label}
      className="inline-flex h-6 min-w-6 items-center justify-center rounded-md px-1 text-xs text-dim hover:bg-hover hover:text-ink"
    >
      <span aria-live="polite">
        {done ? (
          "copied"
        ) : (
          <svg viewBox="0 0 16 16" width="13" height="13" aria-hidden="true" fill="none" stroke="currentColor" strokeWidth="1.4">
            <path d="M5.5 5.5v-3h8v8h-3M2.500 5.500h8v8h-8z" />
          </svg>
        )}
      </span>
    </button>
  );
}

/** The command that does what a button does; whole on several lines where it is what one came for. */
export function Command({ children, wrap = false }: { children: string; wrap?: boolean }) {
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-1 rounded-md bg-raised pl-2 font-mono text-xs text-dim">
      <code className={`min-w-0 ${wrap ? "py-1 break-words whitespace-pre-wrap" : "truncate"}`}>
        <Theirs>{children}</Theirs>
      </code>
      <Copy text={children} label={`Copy the command: ${children}`} />
    </span>
  );
}

/** An id or digest: short, whole on hover and in the copy. */
export function Id({ children, keep = 12 }: { children: string; keep?: number }) {
  return (
    <span className="inline-flex items-center font-mono text-xs text-dim" title={children}>
      <Theirs>{children.length <= keep + 4 ? children : `${children.slice(0, keep)}…${children.slice(-4)}`}</Theirs>
      <Copy text={children} label={`Copy ${children}`} />
    </span>
  );
}

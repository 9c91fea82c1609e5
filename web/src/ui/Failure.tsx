import { headline } from "./headline";
import { Visible } from "./Visible";

/** An error: what it says first, and all of it when somebody asks. */
export function Failure({ text }: { text: string }) {
  const first = headline(text);
  return (
    <div className="min-w-0">
      <p className="font-medium break-words">
        <Visible>{first}</Visible>
      </p>
      {first !== text.trim() && (
        <details>
          <summary className="cursor-pointer py-0.5 text-xs text-dim">The whole error</summary>
          <pre className="max-h-64 overflow-auto py-1 font-mono text-xs break-words whitespace-pre-wrap text-ink">
            <Visible>{text}</Visible>
          </pre>
        </details>
      )}
    </div>
  );
}

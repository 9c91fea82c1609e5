import { Link } from "@tanstack/react-router";
import { Empty } from "~/ui/Answer";
import { Glyph } from "~/ui/State";
import { Time } from "~/ui/Time";
import { type Entry, type Line, linesOf } from "./happened";
import { Theirs } from "~/ui/Theirs";

/** What happened, a line each, with a link to what it is about. */
export function Entries({ entries }: { entries: readonly Entry[] }) {
  if (entries.length === 0) return <Empty>Nothing happened yet. Workflows, decisions, inputs, health and the runner will be here.</Empty>;
  return (
    <ol>
      {linesOf(entries).map((line) => (
        <li key={line.key} className="border-b border-line px-2 py-1 hover:bg-hover">
          <One line={line} />
          {line.entries.length > 1 && (
            <details className="pl-7">
              <summary className="cursor-pointer text-xs text-dim">which</summary>
              <ul className="pb-1 text-dim">
                {line.entries.map((e) => (
                  <li key={e.seq}>
                    <Theirs>{e.text}</Theirs>
                  </li>
                ))}
              </ul>
            </details>
          )}
        </li>
      ))}
    </ol>
  );
}

function One({ line: { tone, text, entries } }: { line: Line }) {
  const e = entries[0]!;
  return (
    <div className="flex min-h-7 flex-wrap items-center gap-x-3 sm:flex-nowrap">
      <Glyph tone={tone} />
      <span className="min-w-0 flex-1 break-words">
        <Theirs>{text}</Theirs>
        {e.error && <span className="block truncate text-xs text-bad">{e.error}</span>}
      </span>
      {e.actor && <Theirs className="max-w-40 truncate text-dim">{e.actor}</Theirs>}
      <span className="text-xs text-dim">
        <Time at={e.at} />
      </span>
      <span className="w-12 text-right">
        <About entry={e} />
      </span>
    </div>
  );
}

function About({ entry: e }: { entry: Entry }) {
  const look = "text-link underline";
  if (e.change_id)
    return (
      <Link to="/changes/$change" params={{ change: e.change_id }} className={look}>
        Open<span className="sr-only"> the change</span>
      </Link>
    );
  if (e.workflow_id)
    return (
      <Link to="/workflows/$workflow" params={{ workflow: e.workflow_id }} className={look}>
        Open<span className="sr-only"> the workflow</span>
      </Link>
    );
  if (e.runner_id)
    return (
      <Link to="/runners/$runner" params={{ runner: e.runner_id }} className={look}>
        Open<span className="sr-only"> the runner</span>
      </Link>
    );
  return null;
}

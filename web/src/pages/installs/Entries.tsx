import { Link } from "@tanstack/react-router";
import type { Answer as Got } from "~/api/client";
import { Empty } from "~/ui/Answer";
import { Glyph, toneOf } from "~/ui/State";
import { Time } from "~/ui/Time";
import { Theirs } from "~/ui/Theirs";

export type Entry = Got<"/installs/{install}/timeline">["items"][number];

/** What happened, a line each, with a link to what it is about. */
export function Entries({ entries }: { entries: readonly Entry[] }) {
  if (entries.length === 0) return <Empty>Nothing happened yet. Workflows, decisions, inputs, health and the runner will be here.</Empty>;
  return (
    <ol>
      {entries.map((e) => (
        <li
          key={e.seq}
          className="flex min-h-9 flex-wrap items-center gap-x-3 border-b border-line px-2 py-1 hover:bg-hover sm:flex-nowrap"
        >
          <Glyph tone={toneOf(outcome(e))} />
          <span className="min-w-0 flex-1 break-words">
            {e.text}
            {e.error && <span className="block truncate text-xs text-bad">{e.error}</span>}
          </span>
          {e.actor && <Theirs className="max-w-40 truncate text-dim">{e.actor}</Theirs>}
          <span className="text-xs text-dim">
            <Time at={e.at} />
          </span>
          <span className="w-12 text-right">
            <About entry={e} />
          </span>
        </li>
      ))}
    </ol>
  );
}

/** What came of it, as a word of the states: a verdict stands in the text only. */
function outcome({ kind, text }: Entry): string {
  const what = kind.slice(kind.indexOf(".") + 1);
  return what === "changed" ? (/\b(healthy|unhealthy)\b/.exec(text)?.[0] ?? what) : what;
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

// What stands in a cell of the fleet: state and release of a component of an install.
import { Glyph, type Tone, toneOf, wordOf } from "~/ui/State";
import type { Cell, Row } from "./rows";

/** How a resource stands, as tone and word: its state first, its health once it is live. */
export function standing(r: { state: string; health: string; drift?: string; switched_off?: boolean | undefined }): {
  tone: Tone;
  word: string;
} {
  if (r.switched_off) return { tone: "off", word: "switched off" };
  if (r.state === "live")
    return r.health === "unknown" ? { tone: "unknown", word: "live, health unknown" } : { tone: toneOf(r.health), word: wordOf(r.health) };
  return { tone: toneOf(r.state), word: wordOf(r.state) };
}

export const hrefOf = (install: string, resource?: string) =>
  `/ui/installs/${encodeURIComponent(install)}${resource ? `?resource=${encodeURIComponent(resource)}` : ""}`;

interface CellProps {
  row: Row;
  cell: Cell | undefined;
  /** A change of it waits for a decision. */
  asks: boolean;
}

export function ResourceCell({ row, cell, asks }: CellProps) {
  if (!cell) return null;
  const { tone, word } = asks ? { tone: "ask" as const, word: "waits for a decision" } : standing(cell);
  const release = cell.live_release?.number;
  const behind = release && row.newest ? row.newest - release : 0;
  const says = [word, release && `release ${release}`, behind > 0 && `${behind} behind`, cell.drift === "drifted" && "drifted"]
    .filter(Boolean)
    .join(", ");
  return (
    <a
      href={hrefOf(row.name, cell.name)}
      title={`${cell.name} of ${row.name}: ${says}`}
      // What is seen comes first, as somebody who speaks to the browser would say it.
      aria-label={`${release ? `r${release}` : cell.state}${behind > 0 ? `↑${behind}` : ""}: ${cell.name} of ${row.name}, ${says}`}
      tabIndex={-1}
      className="flex h-full w-full items-center gap-1.5 tabular-nums hover:underline"
    >
      <Glyph tone={tone} />
      {release ? `r${release}` : <span className="truncate text-dim">{cell.state}</span>}
      {behind > 0 && <span className="text-warn">↑{behind}</span>}
      {cell.drift === "drifted" && <Glyph tone="drift" size={12} />}
    </a>
  );
}

/** An install in few words: what is wrong, which release, what is special. */
export function Signs({ row }: { row: Row }) {
  const { install, workflow } = row.status;
  return (
    <span className="ml-auto flex shrink-0 items-center gap-1.5 text-xs text-dim tabular-nums">
      {install.pause && <Sign tone="off" word={`paused by ${install.pause.by}: ${install.pause.reason}`} />}
      {install.drifted > 0 && <Sign tone="drift" word={`${install.drifted} drifted`} />}
      {workflow && (
        <Sign
          tone={workflow.state === "waiting" ? "ask" : toneOf(workflow.state)}
          word={`${wordOf(workflow.kind)} ${workflow.wait ? `waits for ${wordOf(workflow.wait.reason)}` : wordOf(workflow.state)}`}
        />
      )}
      {row.words.includes("failed") && (
        <Sign tone="bad" word={`${wordOf(row.status.last?.kind ?? "deploy")} failed at ${row.status.last?.step ?? "its begin"}`} />
      )}
      {row.words.includes("offline") && <Sign tone="unknown" word="its runner is silent" />}
      <span>{row.release ? `r${row.release}` : ""}</span>
      {row.behind > 0 && (
        <span className="text-warn" title={`${row.behind} behind the newest release`}>
          ↑{row.behind}
          <span className="sr-only"> behind the newest release</span>
        </span>
      )}
    </span>
  );
}

function Sign({ tone, word }: { tone: Tone; word: string }) {
  return (
    <span title={word}>
      <Glyph tone={tone} size={12} />
      <span className="sr-only">{word}</span>
    </span>
  );
}

/** The glyph of an install: what worries most. */
export function installStanding(row: Row): { tone: Tone; word: string } {
  const { standing: stands, install } = row.status;
  if (stands === "live") return { tone: toneOf(install.health), word: wordOf(install.health) };
  return { tone: toneOf(stands), word: wordOf(stands) };
}

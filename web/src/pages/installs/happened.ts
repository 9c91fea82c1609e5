// What happened to an install, as lines: what came of each, and many of a kind as one. Pure.
import type { Answer as Got } from "~/api/client";
import { type Tone, toneOf } from "~/ui/State";

export type Entry = Got<"/installs/{install}/timeline">["items"][number];

/** One line, or several of the same kind that happened together. */
export interface Line {
  key: number;
  tone: Tone;
  text: string;
  /** The newest of them is first. */
  entries: readonly Entry[];
}

/** What came of it: a verdict stands in the text only. Nothing where it is only news. */
function toneOfEntry({ kind, text, error }: Entry): Tone {
  const what = kind.slice(kind.indexOf(".") + 1);
  if (/\bdrifted\b/.test(text)) return "drift";
  if (what === "changed") {
    const verdict = /\b(unhealthy|healthy|unknown)\b/.exec(text)?.[0];
    return verdict ? toneOf(verdict) : "news";
  }
  const tone = toneOf(what);
  if (tone !== "unknown") return tone;
  return error ? "bad" : "news";
}

const together = 60_000; // ms

/** Whether both say the same of different things: "web is healthy", "api is healthy". */
function sameOf(a: Entry, b: Entry): string | undefined {
  if (a.change_id !== b.change_id || a.workflow_id !== b.workflow_id || a.error || b.error) return undefined;
  if (Math.abs(Date.parse(a.at) - Date.parse(b.at)) > together) return undefined;
  const verdict = / is (healthy|unhealthy|unknown)$/.exec(a.text)?.[1];
  return verdict && b.text.endsWith(` is ${verdict}`) ? verdict : undefined;
}

/** The lines of entries, which come newest first. Three or more that say the same stand in one. */
export function linesOf(entries: readonly Entry[]): Line[] {
  const lines: Line[] = [];
  for (let i = 0; i < entries.length;) {
    const first = entries[i]!;
    let end = i + 1;
    while (end < entries.length && sameOf(first, entries[end]!)) end++;
    const verdict = end - i > 2 ? sameOf(first, entries[i + 1]!) : undefined;
    const size = verdict ? end - i : 1;
    lines.push({
      key: first.seq,
      tone: toneOfEntry(first),
      text: verdict ? `${size} are ${verdict}` : first.text,
      entries: entries.slice(i, i + size),
    });
    i += size;
  }
  return lines;
}

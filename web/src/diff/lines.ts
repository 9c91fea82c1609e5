// What changed between two texts, line by line. Pure; loaded when a plan has a text of
// several lines.
import { diffLines } from "diff";

export interface Line {
  sign: " " | "+" | "-";
  text: string;
  /** The number of the line before and after; a removed line has none after. */
  before?: number;
  after?: number;
}

// The longest edit that is looked for: beyond it the texts have little in common.
const longestEdit = 2_000;
const patience = 250; // ms

/** The lines of both texts, in order. Texts that differ nearly everywhere are shown one after the other. */
export function lineDiff(before: string, after: string): Line[] {
  const found = diffLines(before, after, { maxEditLength: longestEdit, timeout: patience }) ?? [
    { value: before, removed: true, added: false },
    { value: after, removed: false, added: true },
  ];
  const out: Line[] = [];
  let b = 0;
  let a = 0;
  for (const { value, added, removed } of found) {
    if (value === "") continue;
    for (const text of (value.endsWith("\n") ? value.slice(0, -1) : value).split("\n")) {
      if (added) out.push({ sign: "+", text, after: ++a });
      else if (removed) out.push({ sign: "-", text, before: ++b });
      else out.push({ sign: " ", text, before: ++b, after: ++a });
    }
  }
  return out;
}

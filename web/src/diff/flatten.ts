// Makes the rows of a review from the tree of a plan: groups by risk, in them objects,
// in them fields, in them lines. Pure, so that 10,000 objects are one pass.
import type { Line } from "./lines";
import { type Risk, riskOf, risks } from "./risk";

/** A node of GET /changes/{change}/plan/tree. */
export interface PlanNode {
  kind: "module" | "resource" | "attribute";
  name: string;
  type?: string;
  address?: string;
  action?: string;
  reason?: string;
  before?: string;
  after?: string;
  hidden?: boolean;
  known_after_apply?: boolean;
  children?: PlanNode[];
}

/** An object that the plan does something with. */
export interface PlanObject {
  /** Unique in the plan, and the same each time the plan is read. */
  key: string;
  name: string;
  type: string;
  /** The modules or groups that it is in, outermost first. */
  within: string[];
  action: string;
  reason?: string | undefined;
  risk: Risk;
  fields: PlanNode[];
}

export type Row =
  | { is: "group"; key: string; risk: Risk; count: number; folded: boolean }
  | { is: "object"; key: string; object: PlanObject; open: boolean; number: number }
  | { is: "field"; key: string; object: PlanObject; field: PlanNode; lines: "none" | "shown" | "asked" }
  | { is: "lines"; key: string; object: PlanObject; left?: Line; right?: Line; unified?: Line }
  | { is: "same"; key: string; object: PlanObject; field: string; count: number };

/** The objects of a plan, the most far-reaching first, otherwise in the plan's order. */
export function objectsOf(roots: readonly PlanNode[], outputs: readonly PlanNode[] = []): PlanObject[] {
  const byRisk = new Map<Risk, PlanObject[]>(risks.map((risk) => [risk, []]));
  const seen = new Map<string, number>();
  const visit = (nodes: readonly PlanNode[], within: string[]) => {
    for (const node of nodes) {
      if (node.kind === "module") {
        visit(node.children ?? [], [...within, node.name]);
        continue;
      }
      const address = node.address || [...within, node.name].join("/");
      const times = seen.get(address) ?? 0;
      seen.set(address, times + 1);
      const risk = riskOf(node);
      byRisk.get(risk)!.push({
        key: times === 0 ? address : `${address} (${times + 1})`,
        name: node.name,
        type: node.type ?? "",
        within,
        action: node.action || "update",
        reason: node.reason,
        risk,
        fields: node.children ?? [],
      });
    }
  };
  visit(roots, []);
  if (outputs.length > 0)
    byRisk
      .get("rest")!
      .push({ key: "outputs", name: "outputs", type: "", within: [], action: "update", risk: "rest", fields: [...outputs] });
  return risks.flatMap((risk) => byRisk.get(risk)!);
}

export interface View {
  split: boolean;
  /** Groups that are folded. */
  foldedGroups: ReadonlySet<Risk>;
  /** Objects whose fields are not as `open` says. */
  turned: ReadonlySet<string>;
  /** Whether an object's fields are shown at first. */
  open: boolean;
  /** Fields whose lines are all shown, also the unchanged ones, by the key of their row. */
  unfolded: ReadonlySet<string>;
  /** How lines are compared; absent until that is loaded. */
  lines?: ((before: string, after: string) => Line[]) | undefined;
}

/** How many unchanged lines stand around a changed one. */
const context = 3;

/** How many characters of long texts are compared unasked; later ones are when somebody wants to see them. */
const compared = 2_000_000;

/** The rows, in order. */
export function rowsOf(objects: readonly PlanObject[], view: View): Row[] {
  const counts = new Map<Risk, number>();
  for (const { risk } of objects) counts.set(risk, (counts.get(risk) ?? 0) + 1);
  const rows: Row[] = [];
  let group: Risk | undefined;
  let number = 0;
  const spent = { characters: 0 };
  for (const object of objects) {
    const folded = view.foldedGroups.has(object.risk);
    if (object.risk !== group) {
      group = object.risk;
      rows.push({ is: "group", key: `group ${group}`, risk: group, count: counts.get(group)!, folded });
    }
    number++;
    if (folded) continue;
    const open = view.open !== view.turned.has(object.key);
    rows.push({ is: "object", key: object.key, object, open, number });
    if (open) for (const field of object.fields) fieldRows(rows, object, field, view, spent);
  }
  return rows;
}

function fieldRows(rows: Row[], object: PlanObject, field: PlanNode, view: View, spent: { characters: number }): void {
  const key = `${object.key}\n${field.name}`;
  if (!hasLines(field)) {
    rows.push({ is: "field", key, object, field, lines: "none" });
    return;
  }
  spent.characters += (field.before?.length ?? 0) + (field.after?.length ?? 0);
  const shows = view.lines && (spent.characters <= compared || view.unfolded.has(key));
  rows.push({ is: "field", key, object, field, lines: shows ? "shown" : "asked" });
  if (!shows || !view.lines) return;
  const all = view.lines(textOf(field.before ?? ""), textOf(field.after ?? ""));
  const shown = view.unfolded.has(key) ? all.map((line) => ({ line })) : foldLines(all);
  let at = 0;
  for (let i = 0; i < shown.length; i++) {
    const here = shown[i]!;
    if ("same" in here) {
      rows.push({ is: "same", key: `${key}\n${at++}`, object, field: key, count: here.same });
    } else if (!view.split) {
      rows.push({ is: "lines", key: `${key}\n${at++}`, object, unified: here.line });
    } else if (here.line.sign === " ") {
      rows.push({ is: "lines", key: `${key}\n${at++}`, object, left: here.line, right: here.line });
    } else {
      // Removed and added lines of one place stand next to each other.
      const removed: Line[] = [];
      const added: Line[] = [];
      for (; i < shown.length; i++) {
        const next = shown[i]!;
        if ("same" in next || next.line.sign === " ") break;
        (next.line.sign === "-" ? removed : added).push(next.line);
      }
      i--;
      for (let j = 0; j < Math.max(removed.length, added.length); j++) {
        rows.push({
          is: "lines",
          key: `${key}\n${at++}`,
          object,
          ...(removed[j] ? { left: removed[j] } : {}),
          ...(added[j] ? { right: added[j] } : {}),
        });
      }
    }
  }
}

/** Replaces long runs of unchanged lines by how many they are. */
export function foldLines(lines: readonly Line[]): ({ line: Line } | { same: number })[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, i) => {
    if (line.sign !== " ") near.fill(1, Math.max(0, i - context), i + context + 1);
  });
  const out: ({ line: Line } | { same: number })[] = [];
  for (let i = 0; i < lines.length;) {
    if (near[i]) {
      out.push({ line: lines[i++]! });
      continue;
    }
    const begin = i;
    while (i < lines.length && !near[i]) i++;
    if (i - begin === 1) out.push({ line: lines[begin]! });
    else out.push({ same: i - begin });
  }
  return out;
}

/** A value as people read it: a text without its quotes, everything else as JSON. */
export function textOf(value: string): string {
  if (value === "") return "";
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === "string") return parsed;
    if (typeof parsed === "object" && parsed !== null) return JSON.stringify(parsed, null, 2);
  } catch {
    // As the tool wrote it.
  }
  return value;
}

/** The digest of a sensitive value, where the runner gives it (jobspec.DigestKey). */
export const digestOf = (value: string): string | undefined => /^\(sensitive, digest ([0-9a-f]+)\)$/.exec(value)?.[1];

/** Tells whether a field is read line by line. */
export function hasLines({ hidden, before = "", after = "" }: PlanNode): boolean {
  if (hidden) return false;
  return [before, after].some((value) => mayHaveLines.test(value) && textOf(value).includes("\n"));
}

// Most values are not worth being parsed for it.
const mayHaveLines = /^\s*[[{]|\n|\\n/;

/** Tells whether any object has a field that is read line by line. */
export const needsLines = (objects: readonly PlanObject[]): boolean => objects.some((o) => o.fields.some(hasLines));

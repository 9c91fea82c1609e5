// Makes the rows of the fleet of what the API answers: words to filter by, order and groups. Pure.
import type { Answer } from "~/api/client";
import type { Filtered } from "./filter";

export type InstallStatus = Answer<"/status">["items"][number];
export type Cell = Answer<"/resources">["items"][number];

export interface Row extends Filtered {
  id: string;
  status: InstallStatus;
  newest?: number | undefined;
  /** How many releases of its app it is behind. */
  behind: number;
}

/** An install as the fleet shows it. */
export function rowOf(status: InstallStatus): Row {
  const { install, runner, workflow, last, newest_release: newest } = status;
  const behind = newest && install.release ? Math.max(0, newest.number - install.release.number) : 0;
  const words = [
    status.standing,
    install.health,
    ...(install.pause ? ["paused"] : []),
    ...(install.drifted > 0 ? ["drifted"] : []),
    ...(behind > 0 ? ["behind"] : []),
    ...(workflow ? [workflow.state] : []),
    ...(!workflow && last?.state === "failed" && !last.superseded ? ["failed"] : []),
    ...(install.open_alerts > 0 ? ["alert"] : []),
    ...(runner && !runner.online ? ["offline"] : []),
  ];
  return {
    id: install.id,
    status,
    name: install.name,
    app: install.app.name,
    customer: install.customer.name,
    labels: install.labels,
    release: install.release?.number,
    newest: newest?.number,
    behind,
    health: install.health,
    words: [...new Set(words)],
  };
}

export const sorts = ["name", "health", "release", "customer", "newest"] as const;
export type Sort = (typeof sorts)[number];

/** How bad it is: the worst comes first. */
function worry({ status, words }: Pick<Row, "status" | "words">): number {
  if (status.install.health === "unhealthy") return 0;
  if (words.includes("failed") || words.some((w) => w.endsWith("_failed"))) return 1;
  if (words.includes("waiting")) return 2;
  if (words.includes("drifted")) return 3;
  if (words.includes("offline") || status.install.health === "unknown") return 4;
  return 5;
}

const name = new Intl.Collator("en", { numeric: true });

const orders: Record<Sort, (a: Row, b: Row) => number> = {
  name: () => 0,
  health: (a, b) => worry(a) - worry(b),
  release: (a, b) => (a.release ?? -1) - (b.release ?? -1),
  customer: (a, b) => name.compare(a.customer, b.customer),
  newest: (a, b) => b.status.install.created_at.localeCompare(a.status.install.created_at),
};

export const sorted = (rows: readonly Row[], by: Sort): Row[] => [...rows].sort((a, b) => orders[by](a, b) || name.compare(a.name, b.name));

export interface Group {
  /** What its installs have in common; empty when nothing is grouped by. */
  name: string;
  rows: Row[];
}

/** Rows by what they have in common: app, customer, health, release, or `label:NAME`. Their order stays. */
export function grouped(rows: readonly Row[], by: string | undefined): Group[] {
  if (!by) return [{ name: "", rows: [...rows] }];
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = common(row, by);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return [...groups].sort(([a], [b]) => name.compare(a, b)).map(([key, all]) => ({ name: key, rows: all }));
}

function common(row: Row, by: string): string {
  if (by.startsWith("label:")) {
    const label = by.slice("label:".length);
    return `${label}=${row.labels[label] ?? "(none)"}`;
  }
  switch (by) {
    case "app":
      return row.app;
    case "customer":
      return row.customer;
    case "health":
      return row.health;
    case "release":
      return row.release === undefined ? `${row.app}, no release` : `${row.app} r${row.release}`;
    default:
      return "";
  }
}

/** What one can group by: what all have, and their labels. */
export function groupings(rows: readonly Row[]): string[] {
  const labels = new Set(rows.flatMap((r) => Object.keys(r.labels)));
  return ["app", "customer", "health", "release", ...[...labels].sort(name.compare).map((l) => `label:${l}`)];
}

/** The columns: the sandbox, then the components of all installs by name. */
export function components(cells: Iterable<ReadonlyMap<string, Cell>>): string[] {
  const names = new Set<string>();
  let sandbox = false;
  for (const of of cells)
    for (const c of of.values()) {
      if (c.kind === "sandbox") sandbox = true;
      else names.add(c.name);
    }
  return [...(sandbox ? ["sandbox"] : []), ...[...names].sort(name.compare)];
}

/** The rows between two that were clicked, in the order of the screen. */
export function between(order: readonly string[], from: string, to: string): string[] {
  const a = order.indexOf(from);
  const b = order.indexOf(to);
  if (a < 0 || b < 0) return [to];
  return order.slice(Math.min(a, b), Math.max(a, b) + 1);
}

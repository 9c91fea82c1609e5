// A graph of the API as what is drawn, and in words. Where things stand, the API says. Pure.
import type { Answer } from "~/api/client";
import type { Tone } from "~/ui/State";

export type Graph = Answer<"/installs/{install}/graph">;
export type GraphNode = Graph["nodes"][number];
type Edge = Graph["edges"][number];
type Point = Graph["layout"]["lines"][number][number];

/** Of more only the list is shown: a picture says nothing of them. */
export const mostDrawn = 1000;

/** How high the picture of a graph is in so much width, where all of it is seen. */
export function heightFor(layout: { width: number; height: number }, width: number): number {
  const zoom = Math.min(1, width / Math.max(layout.width, 1));
  return Math.round(Math.min(Math.max(layout.height * zoom + 48, 140), 460));
}

/** The way of a line, with rounded corners. */
export function pathOf(points: readonly Point[], radius = 8): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x} ${first.y}`;
  rest.forEach((p, i) => {
    const before = i === 0 ? first : rest[i - 1]!;
    const after = rest[i + 1];
    if (!after) {
      path += `L${p.x} ${p.y}`;
      return;
    }
    const a = towards(p, before, radius);
    const b = towards(p, after, radius);
    path += `L${a.x} ${a.y}Q${p.x} ${p.y} ${b.x} ${b.y}`;
  });
  return path;
}

function towards(from: Point, to: Point, by: number): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  if (length === 0) return from;
  const share = Math.min(by, length / 2) / length;
  return { x: round(from.x + (to.x - from.x) * share), y: round(from.y + (to.y - from.y) * share) };
}

const round = (n: number) => Math.round(n * 10) / 10;

/** Why one needs the other, a line each. */
export function reasonsOf(edge: Edge): string[] {
  return edge.reasons.map((r) => {
    const where = r.file ? ` (${r.file}${r.line ? `:${r.line}` : ""})` : "";
    switch (r.kind) {
      case "order":
        return "the sandbox comes first";
      case "dependencies":
        return `it is written in dependencies${where}`;
      case "reference":
        return `it reads ${r.reference ?? "what the other gives out"}${where}`;
      case "context":
        return `it stands in the cluster ${r.kubernetes_context ?? "of the other"}${where}`;
    }
  });
}

/** What a node needs, with why: the text of the edges that leave it. */
export type Needs = readonly { name: string; reasons: string[] }[];

/** What each node needs, by its name; in the order of the graph. */
export function needsOf(graph: Graph): ReadonlyMap<string, Needs> {
  const needs = new Map<string, { name: string; reasons: string[] }[]>();
  for (const edge of graph.edges) {
    const to = { name: edge.to, reasons: reasonsOf(edge) };
    const known = needs.get(edge.from);
    if (known) known.push(to);
    else needs.set(edge.from, [to]);
  }
  return needs;
}

/** What is worth saying: the sandbox, which everything needs, only where it is all. */
export function worthSaying(needs: Needs): Needs {
  const others = needs.filter((n) => n.name !== "sandbox");
  return others.length > 0 ? others : needs;
}

/** What is said of a node. */
export interface Said {
  word: string;
  /** A second line, such as the release. */
  detail?: string | undefined;
}

/** How a node looks besides its name. */
export interface Look extends Said {
  /** None where nothing is deployed. */
  tone?: Tone | undefined;
}

/** A node as a screen reader says it, in one line. */
export const nameOf = (node: { name: string }, { word, detail }: Said): string =>
  `${node.name}: ${[word, detail].filter(Boolean).join(", ")}`.replaceAll("\n", " ");

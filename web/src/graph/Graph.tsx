// A graph with the list that says the same.
import { lazy, type ReactNode, Suspense } from "react";
import { Glyph } from "~/ui/State";
import type { Look } from "./Canvas";
import { type Graph, type GraphNode, mostDrawn, needsOf, needsSaid } from "./shape";
import { Theirs } from "~/ui/Theirs";

const Canvas = lazy(() => import("./Canvas"));

/** A wider drawing has the width of the page, with the list below; in pixels. */
const widestNextToList = 680;

interface GraphViewProps {
  graph: Graph;
  label: string;
  look: (node: GraphNode) => Look;
  chosen?: string | undefined;
  onChoose: (name: string | undefined) => void;
  /** What else a line of the list says. */
  aside?: (node: GraphNode) => ReactNode;
  /** What is known of the chosen node. */
  detail?: (node: GraphNode) => ReactNode;
}

export function GraphView({ graph, label, look, chosen, onChoose, aside, detail }: GraphViewProps) {
  const node = graph.nodes.find((n) => n.name === chosen);
  const wide = graph.layout.width > widestNextToList;
  return (
    <div className={wide ? "" : "flex flex-col gap-x-6 xl:flex-row"}>
      {graph.nodes.length <= mostDrawn && (
        <div className={`hidden min-w-0 sm:block ${wide ? "pb-3" : "flex-[3]"}`}>
          <Suspense fallback={<div className="h-64" />}>
            <Canvas
              graph={graph}
              label={label}
              look={look}
              chosen={chosen}
              onChoose={(name) => onChoose(name === chosen ? undefined : name)}
            />
          </Suspense>
        </div>
      )}
      <div className="min-w-0 flex-[2]">
        <ul
          aria-label={label}
          className={`max-h-[460px] overflow-auto ${wide ? "grid grid-cols-[repeat(auto-fill,minmax(min(100%,20rem),1fr))] gap-x-6 border-t border-line" : ""}`}
        >
          {graph.nodes.map((n) => {
            const { tone, word, detail: more } = look(n);
            const needs = needsSaid(graph, n.name);
            return (
              <li key={n.name} className="border-b border-line [contain-intrinsic-size:auto_40px] [content-visibility:auto]">
                <button
                  type="button"
                  aria-expanded={n.name === chosen}
                  data-chosen={n.name === chosen || undefined}
                  onClick={() => onChoose(n.name === chosen ? undefined : n.name)}
                  className="flex min-h-10 w-full items-center gap-2 px-2 py-1 text-left hover:bg-hover data-chosen:bg-chosen"
                >
                  {tone && <Glyph tone={tone} />}
                  <span className="min-w-0 flex-1">
                    <span className="flex gap-2">
                      <Theirs className="truncate font-medium">{n.name}</Theirs>
                      <span className="truncate text-dim">{[word, more].filter(Boolean).join(" · ")}</span>
                    </span>
                    {needs.length > 0 && (
                      <span className="block truncate text-xs text-dim">
                        needs{" "}
                        {needs.map(({ name, reasons }, i) => (
                          <span key={name} title={reasons.join("; ")}>
                            {i > 0 && ", "}
                            <Theirs>{name}</Theirs>
                          </span>
                        ))}
                      </span>
                    )}
                  </span>
                  {aside?.(n)}
                </button>
              </li>
            );
          })}
        </ul>
        {node && (
          <div className="border-b border-line bg-raised px-3 py-2">
            {needsOf(graph, node.name).map(({ name, reasons }) => (
              <p key={name}>
                needs <Theirs className="font-medium">{name}</Theirs>
                {reasons.length > 0 && <span className="text-dim">: {reasons.join("; ")}</span>}
              </p>
            ))}
            {detail?.(node)}
          </div>
        )}
      </div>
    </div>
  );
}

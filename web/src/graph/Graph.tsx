// A graph with the list that says the same.
import { type ReactNode, Suspense, useMemo } from "react";
import { type Graph, type GraphNode, type Look, mostDrawn, needsOf } from "./shape";
import { NodeList } from "./NodeList";
import { Theirs } from "~/ui/Theirs";
import { late } from "~/late";

const Canvas = late(() => import("./Canvas"));

/** A wider drawing has the width of the page, with the list below; in pixels. */
const widestNextToList = 680;

interface GraphViewProps {
  graph: Graph;
  label: string;
  look: (node: GraphNode) => Look;
  chosen?: string | undefined;
  onChoose: (name: string | undefined) => void;
  /** What is known of the chosen node. */
  detail?: (node: GraphNode) => ReactNode;
}

export function GraphView({ graph, label, look, chosen, onChoose, detail }: GraphViewProps) {
  const needs = useMemo(() => needsOf(graph), [graph]);
  const node = graph.nodes.find((n) => n.name === chosen);
  const wide = graph.layout.width > widestNextToList;
  const choose = (name: string) => onChoose(name === chosen ? undefined : name);
  return (
    <div className={wide ? "" : "flex flex-col gap-x-6 xl:flex-row"}>
      {graph.nodes.length <= mostDrawn && (
        <div className={`hidden min-w-0 sm:block ${wide ? "pb-3" : "flex-[3]"}`}>
          <Suspense fallback={<div role="status" aria-label="Loading" className="h-64" />}>
            <Canvas graph={graph} label={label} look={look} chosen={chosen} onChoose={choose} />
          </Suspense>
        </div>
      )}
      <div className="min-w-0 flex-[2]">
        <NodeList nodes={graph.nodes} label={label} look={look} needs={needs} chosen={chosen} onChoose={choose} wide={wide} />
        {node && (
          <div className="border-b border-line bg-raised px-3 py-2">
            {needs.get(node.name)?.map(({ name, reasons }) => (
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

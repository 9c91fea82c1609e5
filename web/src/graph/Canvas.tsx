// Draws a graph where the API places its nodes. Load it lazily: it brings xyflow.
import "@xyflow/react/dist/base.css";
import {
  BaseEdge,
  Background,
  Controls,
  type Edge,
  type EdgeProps,
  Handle,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from "@xyflow/react";
import { createContext, useContext, useMemo } from "react";
import { Glyph, type Tone } from "~/ui/State";
import { type Graph, type GraphNode, nameOf, pathOf, reasonsOf, type Said } from "./shape";

/** How a node looks besides its name. */
export interface Look extends Said {
  /** None where nothing is deployed. */
  tone?: Tone;
}

interface CanvasProps {
  graph: Graph;
  /** What the picture shows, for screen readers. */
  label: string;
  look: (node: GraphNode) => Look;
  chosen?: string | undefined;
  onChoose: (name: string) => void;
}

type Box = Node<{ node: GraphNode; chosen: boolean }, "box">;
type Line = Edge<{ path: string; lit: boolean }, "line">;

const Looks = createContext<(node: GraphNode) => Look>(() => ({ word: "" }));

export default function Canvas({ graph, label, look, chosen, onChoose }: CanvasProps) {
  // By their text: `look` is another function each time, and seldom says something else.
  const names = graph.nodes.map((node) => nameOf(node, look(node))).join("\n");
  const { nodes, edges } = useMemo(() => drawn(graph, chosen, names.split("\n")), [graph, chosen, names]);
  const height = Math.min(Math.max(graph.layout.height + 24, 140), 460);
  return (
    <Looks value={look}>
      <div className="w-full" style={{ height }}>
        <ReactFlow
          aria-label={label}
          className="[&_.react-flow\_\_attribution]:bg-transparent! [&_.react-flow\_\_attribution_a]:text-dim!"
          nodes={nodes}
          edges={edges}
          nodeTypes={nodeTypes}
          edgeTypes={edgeTypes}
          fitView
          fitViewOptions={{ padding: 0.06, maxZoom: 1 }}
          minZoom={0.1}
          maxZoom={1.5}
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          zoomOnScroll={false}
          preventScrolling={false}
          onNodeClick={(_, node) => onChoose(node.id)}
          onlyRenderVisibleElements={graph.nodes.length > 100}
        >
          <Background gap={16} size={1} color="var(--color-line)" />
          <Controls
            position="top-right"
            orientation="horizontal"
            showInteractive={false}
            className="[&_button]:border-line! [&_button]:bg-ground! [&_button]:text-ink!"
          />
        </ReactFlow>
      </div>
    </Looks>
  );
}

function drawn(graph: Graph, chosen: string | undefined, names: readonly string[]): { nodes: Box[]; edges: Line[] } {
  const nodes = graph.nodes.map<Box>((node, i) => {
    const box = graph.layout.boxes[i]!;
    return {
      id: node.name,
      type: "box",
      position: { x: box.x, y: box.y },
      width: box.width,
      height: box.height,
      data: { node, chosen: node.name === chosen },
      ariaLabel: names[i] ?? node.name,
    };
  });
  const edges = graph.edges.flatMap<Line>((edge, i) => {
    const points = graph.layout.lines[i];
    if (!points || points.length < 2) return []; // goes without saying
    const lit = edge.from === chosen || edge.to === chosen;
    return [
      {
        id: `${edge.from} ${edge.to}`,
        type: "line",
        source: edge.to,
        target: edge.from,
        data: { path: pathOf(points), lit },
        ariaLabel: `${edge.from} needs ${edge.to}: ${reasonsOf(edge).join("; ")}`,
        zIndex: lit ? 1 : 0,
      },
    ];
  });
  return { nodes, edges };
}

function BoxNode({ data: { node, chosen } }: NodeProps<Box>) {
  const { tone, word, detail } = useContext(Looks)(node);
  return (
    <div
      title={`${node.name}: ${word}`}
      data-chosen={chosen || undefined}
      className="flex h-full w-full cursor-pointer items-center gap-2 rounded-md border border-line-strong bg-ground px-2.5 text-sm hover:bg-hover data-chosen:border-accent data-chosen:bg-chosen"
    >
      {tone && <Glyph tone={tone} />}
      <span className="min-w-0 flex-1">
        <bdi className="block truncate leading-tight font-medium">{node.name}</bdi>
        <span className="block truncate text-xs leading-tight text-dim">{[word, detail].filter(Boolean).join(" · ")}</span>
      </span>
      <Handle type="target" position={Position.Left} className="opacity-0" />
      <Handle type="source" position={Position.Right} className="opacity-0" />
    </div>
  );
}

function PathEdge({ id, data }: EdgeProps<Line>) {
  return (
    <BaseEdge
      id={id}
      path={data?.path ?? ""}
      style={{ stroke: data?.lit ? "var(--color-accent)" : "var(--color-line-strong)", strokeWidth: data?.lit ? 2 : 1.25 }}
    />
  );
}

const nodeTypes = { box: BoxNode };
const edgeTypes = { line: PathEdge };

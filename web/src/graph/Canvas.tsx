// Draws a graph where the API places its nodes. Load it lazily: it brings xyflow.
import "@xyflow/react/dist/base.css";
import { Background, Controls, type Node, type NodeProps, ReactFlow, useStore, ViewportPortal } from "@xyflow/react";
import { createContext, useContext, useMemo } from "react";
import { colourOf, Glyph, type Tone } from "~/ui/State";
import { type Graph, type GraphNode, nameOf, pathOf, reasonsOf, type Said } from "./shape";
import { Theirs } from "~/ui/Theirs";

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

const Looks = createContext<(node: GraphNode) => Look>(() => ({ word: "" }));

export default function Canvas({ graph, label, look, chosen, onChoose }: CanvasProps) {
  // By their text: `look` is another function each time, and seldom says something else.
  const names = graph.nodes.map((node) => nameOf(node, look(node))).join("\n");
  const nodes = useMemo(() => drawn(graph, chosen, names.split("\n")), [graph, chosen, names]);
  const height = Math.min(Math.max(graph.layout.height + 16, 140), 460);
  return (
    <Looks value={look}>
      <div className="w-full" style={{ height }}>
        <ReactFlow
          aria-label={label}
          className="[&_.react-flow\_\_attribution]:bg-transparent! [&_.react-flow\_\_attribution_a]:text-dim!"
          nodes={nodes}
          nodeTypes={nodeTypes}
          fitView
          fitViewOptions={{ padding: 0.06, maxZoom: 1 }}
          minZoom={0.1}
          maxZoom={1.5}
          nodesDraggable={false}
          nodesConnectable={false}
          zoomOnScroll={false}
          preventScrolling={false}
          onNodeClick={(_, node) => onChoose(node.id)}
          onlyRenderVisibleElements={graph.nodes.length > 100}
        >
          <Lines graph={graph} chosen={chosen} />
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

function drawn(graph: Graph, chosen: string | undefined, names: readonly string[]): Box[] {
  return graph.nodes.map<Box>((node, i) => {
    const box = graph.layout.boxes[i]!;
    return {
      id: node.name,
      type: "box",
      position: { x: box.x, y: box.y },
      width: box.width,
      height: box.height,
      // Known from the API: nothing waits until the page has measured it.
      measured: { width: box.width, height: box.height },
      handles: [],
      data: { node, chosen: node.name === chosen },
      ariaLabel: names[i] ?? node.name,
    };
  });
}

/** All lines as one picture: the API says where they go, so that none waits for its nodes. */
function Lines({ graph, chosen }: { graph: Graph; chosen: string | undefined }) {
  const { width, height } = graph.layout;
  return (
    <ViewportPortal>
      <svg
        aria-hidden="true" // the list says them
        width={width}
        height={height}
        className="absolute top-0 left-0 -z-1 overflow-visible"
        fill="none"
      >
        {graph.edges.map((edge, i) => {
          const points = graph.layout.lines[i];
          if (!points || points.length < 2) return null; // goes without saying
          const lit = edge.from === chosen || edge.to === chosen;
          return (
            <path
              key={`${edge.from} ${edge.to}`}
              d={pathOf(points)}
              className={lit ? "stroke-accent" : "stroke-line-strong"}
              strokeWidth={lit ? 2 : 1.25}
              pointerEvents="stroke"
            >
              <title>{`${edge.from} needs ${edge.to}: ${reasonsOf(edge).join("; ")}`}</title>
            </path>
          );
        })}
      </svg>
    </ViewportPortal>
  );
}

/** Below it no text can be read: nodes are drawn without one. */
const readable = 0.4;

function BoxNode({ data: { node, chosen } }: NodeProps<Box>) {
  const { tone, word, detail } = useContext(Looks)(node);
  const far = useStore((flow) => flow.transform[2] < readable);
  if (far) {
    return (
      <div
        title={`${node.name}: ${word}`}
        data-chosen={chosen || undefined}
        className={`h-full w-full cursor-pointer rounded-md border-8 border-current bg-ground data-chosen:bg-accent ${tone ? colourOf(tone) : "text-dim"}`}
      />
    );
  }
  return (
    <div
      title={`${node.name}: ${word}`}
      data-chosen={chosen || undefined}
      className="flex h-full w-full cursor-pointer items-center gap-2 rounded-md border border-line-strong bg-ground px-2.5 text-sm hover:bg-hover data-chosen:border-accent data-chosen:bg-chosen"
    >
      {tone && <Glyph tone={tone} />}
      <span className="min-w-0 flex-1">
        <Theirs className="block truncate leading-tight font-medium">{node.name}</Theirs>
        <span className="block truncate text-xs leading-tight text-dim">{[word, detail].filter(Boolean).join(" · ")}</span>
      </span>
    </div>
  );
}

const nodeTypes = { box: BoxNode };

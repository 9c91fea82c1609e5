// Draws a graph where the API places its nodes. Load it lazily: it brings xyflow, which moves
// the picture; the nodes are ours, since hundreds of its own take too long.
import "@xyflow/react/dist/base.css";
import { Background, Controls, getViewportForBounds, ReactFlow, useReactFlow, useStore, ViewportPortal } from "@xyflow/react";
import { memo, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { colourOf, Glyph } from "~/ui/State";
import { type Graph, type GraphNode, heightFor, type Look, nameOf, pathOf, reasonsOf } from "./shape";
import { Theirs } from "~/ui/Theirs";

interface CanvasProps {
  graph: Graph;
  /** What the picture shows, for screen readers. */
  label: string;
  look: (node: GraphNode) => Look;
  chosen?: string | undefined;
  onChoose: (name: string) => void;
}

type Place = Graph["layout"]["boxes"][number];

const nothing: never[] = [];
const smallest = 0.05;
/** How much room is left around the whole picture, as a share of it. */
const margin = 0.06;

/** Where the whole picture is seen, and not larger than it is. */
const whole = (graph: Graph, { width, height }: { width: number; height: number }) =>
  getViewportForBounds({ x: 0, y: 0, width: graph.layout.width, height: graph.layout.height }, width, height, smallest, 1, margin);

export default function Canvas({ graph, label, look, chosen, onChoose }: CanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (box.current) setWidth(box.current.clientWidth);
  }, []);
  const height = heightFor(graph.layout, width);
  return (
    <div ref={box} className="w-full" style={{ height }}>
      {width > 0 && (
        <ReactFlow
          aria-label={label}
          className="[&_.react-flow\_\_attribution]:bg-transparent! [&_.react-flow\_\_attribution_a]:text-dim!"
          nodes={nothing}
          defaultViewport={whole(graph, { width, height })}
          minZoom={smallest}
          maxZoom={1.5}
          zoomOnScroll={false}
          preventScrolling={false}
        >
          <ViewportPortal>
            <Lines graph={graph} chosen={chosen} />
            <Boxes graph={graph} look={look} chosen={chosen} onChoose={onChoose} />
          </ViewportPortal>
          <Background gap={16} size={1} color="var(--color-line)" />
          <Moves graph={graph} />
        </ReactFlow>
      )}
    </div>
  );
}

function Moves({ graph }: { graph: Graph }) {
  const flow = useReactFlow();
  const width = useStore((s) => s.width);
  const height = useStore((s) => s.height);
  return (
    <Controls
      position="top-right"
      orientation="horizontal"
      showInteractive={false}
      onFitView={() => void flow.setViewport(whole(graph, { width, height }))}
      className="[&_button]:border-line! [&_button]:bg-ground! [&_button]:text-ink!"
    />
  );
}

/** All lines as one picture: the API says where they go, so that none waits for its nodes. */
const Lines = memo(function Lines({ graph, chosen }: { graph: Graph; chosen: string | undefined }) {
  const { width, height } = graph.layout;
  return (
    <svg
      aria-hidden="true" // the list says them
      width={width}
      height={height}
      className="absolute top-0 left-0 overflow-visible"
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
  );
});

/** Below it no text can be read: nodes are their glyph alone. */
const readable = 0.4;

function Boxes({ graph, look, chosen, onChoose }: Omit<CanvasProps, "label">) {
  const far = useStore((flow) => flow.transform[2] < readable);
  const choose = useRef(onChoose);
  useEffect(() => {
    choose.current = onChoose;
  }, [onChoose]);
  const take = useCallback((name: string) => choose.current(name), []);
  return graph.nodes.map((node, i) => {
    const at = graph.layout.boxes[i]!;
    const said = look(node);
    return (
      <Box
        key={node.name}
        name={node.name}
        at={at}
        tone={said.tone}
        word={said.word}
        detail={said.detail}
        far={far}
        chosen={node.name === chosen}
        onChoose={take}
      />
    );
  });
}

interface BoxProps extends Look {
  name: string;
  at: Place;
  far: boolean;
  chosen: boolean;
  onChoose: (name: string) => void;
}

/** Drawn again only when it says something else. */
const Box = memo(function Box({ name, at, tone, word, detail, far, chosen, onChoose }: BoxProps) {
  const flow = useReactFlow();
  /** Who comes to it by keyboard sees it. */
  const show = (box: HTMLElement) => {
    const seen = box.closest(".react-flow")?.getBoundingClientRect();
    const { left, right, top, bottom } = box.getBoundingClientRect();
    if (!seen || (left >= seen.left && right <= seen.right && top >= seen.top && bottom <= seen.bottom)) return;
    void flow.setCenter(at.x + at.width / 2, at.y + at.height / 2, { zoom: flow.getZoom() });
  };
  return (
    <button
      type="button"
      data-box
      tabIndex={far ? -1 : undefined} // too small to be met by keyboard; the list has them all
      aria-label={far ? nameOf({ name }, { word, detail }) : undefined}
      aria-pressed={chosen}
      title={`${name}: ${word}`}
      onClick={() => onChoose(name)}
      onFocus={(e) => {
        if (e.target.matches(":focus-visible")) show(e.target);
      }}
      data-chosen={chosen || undefined}
      className={`pointer-events-auto absolute flex cursor-pointer items-center rounded-md bg-ground text-left ${
        far
          ? `justify-center border-[6px] border-current data-chosen:bg-accent ${tone ? colourOf(tone) : "text-dim"}`
          : "gap-2 border border-line-strong px-2.5 text-sm hover:bg-hover data-chosen:border-accent data-chosen:bg-chosen"
      }`}
      style={{ left: at.x, top: at.y, width: at.width, height: at.height }}
    >
      {far ? (
        tone && (
          <span className="scale-[2.25]">
            <Glyph tone={tone} />
          </span>
        )
      ) : (
        <>
          {tone && <Glyph tone={tone} />}
          <span className="min-w-0 flex-1">
            <Theirs className="block truncate leading-tight font-medium">{name}</Theirs>
            <span className="block truncate text-xs leading-tight text-dim">{[word, detail].filter(Boolean).join(" · ")}</span>
          </span>
        </>
      )}
    </button>
  );
});

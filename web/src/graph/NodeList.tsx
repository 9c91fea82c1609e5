// The nodes of a graph as a list: what the picture shows, in words.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Glyph } from "~/ui/State";
import { type GraphNode, type Look, type Needs, worthSaying } from "./shape";
import { Theirs } from "~/ui/Theirs";

interface NodeListProps {
  nodes: readonly GraphNode[];
  label: string;
  look: (node: GraphNode) => Look;
  needs: ReadonlyMap<string, Needs>;
  chosen: string | undefined;
  onChoose: (name: string) => void;
  /** It has the width of the page. */
  wide: boolean;
}

/** Of more, only those that are on the screen are in the page. */
const mostAtOnce = 100;

export function NodeList(props: NodeListProps) {
  return props.nodes.length <= mostAtOnce ? <Whole {...props} /> : <Windowed {...props} />;
}

function Whole({ nodes, label, wide, chosen, ...rest }: NodeListProps) {
  return (
    <ul
      aria-label={label}
      className={`max-h-[460px] overflow-auto ${wide ? "grid grid-cols-[repeat(auto-fill,minmax(min(100%,20rem),1fr))] gap-x-6 border-t border-line" : ""}`}
    >
      {nodes.map((node) => (
        <li key={node.name} className="border-b border-line">
          <Line node={node} chosen={node.name === chosen} {...rest} />
        </li>
      ))}
    </ul>
  );
}

const lineHeight = 44;
const columnWidth = 320;

function Windowed({ nodes, label, chosen, ...rest }: NodeListProps) {
  const box = useRef<HTMLUListElement>(null);
  const [columns, setColumns] = useState(1);
  useLayoutEffect(() => {
    const list = box.current;
    if (!list) return;
    const fit = () => setColumns(Math.max(1, Math.floor(list.clientWidth / columnWidth)));
    fit();
    const watch = new ResizeObserver(fit);
    watch.observe(list);
    return () => watch.disconnect();
  }, []);
  // eslint-disable-next-line react-hooks/incompatible-library -- no compiler is used here
  const rows = useVirtualizer({
    count: Math.ceil(nodes.length / columns),
    getScrollElement: () => box.current,
    estimateSize: () => lineHeight,
    overscan: 4,
  });
  const at = nodes.findIndex((n) => n.name === chosen);
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(Math.floor(at / columns), { align: "auto" });
  }, [at, columns, rows]);
  return (
    <ul ref={box} aria-label={label} className="relative h-[460px] overflow-auto border-y border-line" tabIndex={-1}>
      {rows.getVirtualItems().map((row) =>
        nodes.slice(row.index * columns, (row.index + 1) * columns).map((node, i) => (
          <li
            key={node.name}
            aria-setsize={nodes.length}
            aria-posinset={row.index * columns + i + 1}
            className="absolute overflow-hidden border-b border-line pr-3"
            style={{ top: row.start, height: lineHeight, left: `${(i * 100) / columns}%`, width: `${100 / columns}%` }}
          >
            <Line node={node} chosen={node.name === chosen} {...rest} />
          </li>
        )),
      )}
      <li aria-hidden="true" className="w-px" style={{ height: rows.getTotalSize() }} />
    </ul>
  );
}

type LineProps = Pick<NodeListProps, "look" | "needs" | "onChoose"> & { node: GraphNode; chosen: boolean };

function Line({ node, chosen, look, needs, onChoose }: LineProps) {
  const { tone, word, detail } = look(node);
  const said = worthSaying(needs.get(node.name) ?? []);
  return (
    <button
      type="button"
      aria-expanded={chosen}
      data-chosen={chosen || undefined}
      onClick={() => onChoose(node.name)}
      className="flex min-h-10 w-full items-center gap-2 px-2 py-1 text-left hover:bg-hover data-chosen:bg-chosen"
    >
      {tone && <Glyph tone={tone} />}
      <span className="min-w-0 flex-1">
        <span className="flex gap-2">
          <Theirs className="truncate font-medium">{node.name}</Theirs>
          <span className="truncate text-dim">{[word, detail].filter(Boolean).join(" · ")}</span>
        </span>
        {said.length > 0 && (
          <span className="block truncate text-xs text-dim">
            needs{" "}
            {said.map(({ name, reasons }, i) => (
              <span key={name} title={reasons.join("; ")}>
                {i > 0 && ", "}
                <Theirs>{name}</Theirs>
              </span>
            ))}
          </span>
        )}
      </span>
    </button>
  );
}

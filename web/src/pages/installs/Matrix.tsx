// A table of any size: only the cells that are on the screen are in the page.
import { useVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import { memo, type ReactNode, useLayoutEffect, useRef, useSyncExternalStore } from "react";

export interface Line {
  key: string;
  head: ReactNode;
  /** A heading over the lines below it: it has no cells. */
  group?: boolean;
}

interface MatrixProps {
  /** What the table holds, for screen readers. */
  label: string;
  /** What stands over the heads of the lines. */
  corner: ReactNode;
  lines: readonly Line[];
  /** The line that the keyboard is at: it is kept on the screen. */
  chosen?: string | undefined;
  columns: readonly Line[];
  cell: (line: string, column: string) => ReactNode;
  columnWidth: number;
}

const lineHeight = 36;
const headHeight = 40;

const wide = matchMedia("(min-width: 640px)");
function watchWide(tell: () => void) {
  wide.addEventListener("change", tell);
  return () => wide.removeEventListener("change", tell);
}

export function Matrix({ label, corner, lines, chosen, columns, cell, columnWidth }: MatrixProps) {
  const box = useRef<HTMLDivElement>(null);
  const headWidth = useSyncExternalStore(watchWide, () => wide.matches) ? 300 : 176;
  // eslint-disable-next-line react-hooks/incompatible-library -- no compiler is used here; MatrixLine is memoized by hand
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => lineHeight,
    overscan: 3,
    scrollPaddingStart: headHeight,
  });
  const across = useVirtualizer({
    horizontal: true,
    count: columns.length,
    getScrollElement: () => box.current,
    estimateSize: () => columnWidth,
    overscan: 1,
    scrollPaddingStart: headWidth,
  });
  const at = lines.findIndex((l) => l.key === chosen);
  useLayoutEffect(() => {
    if (at >= 0) rows.scrollToIndex(at, { align: "auto" });
  }, [at, rows]);

  const shown = across.getVirtualItems();
  const width = headWidth + across.getTotalSize();
  return (
    <div
      ref={box}
      tabIndex={0}
      className="min-h-0 flex-1 overflow-auto border-y border-line outline-offset-[-2px]"
      aria-label={label}
      role="region"
    >
      <div
        role="table"
        aria-label={label}
        aria-rowcount={lines.length + 1}
        aria-colcount={columns.length + 1}
        style={{ width, minWidth: "100%" }}
      >
        <div
          role="row"
          aria-rowindex={1}
          className="sticky top-0 z-[3] flex border-b border-line bg-ground text-xs font-medium text-dim"
          style={{ height: headHeight }}
        >
          <div role="columnheader" className="sticky left-0 z-[1] flex shrink-0 items-center bg-ground px-2" style={{ width: headWidth }}>
            {corner}
          </div>
          {shown.map((c, i) => (
            <div
              key={columns[c.index]?.key}
              role="columnheader"
              aria-colindex={c.index + 2}
              className="flex shrink-0 items-center gap-2 overflow-hidden px-2"
              style={{ width: c.size, marginLeft: i === 0 ? c.start : 0 }}
            >
              {columns[c.index]?.head}
            </div>
          ))}
        </div>
        <div role="rowgroup" className="relative" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((r) => {
            const line = lines[r.index];
            return (
              line && (
                <MatrixLine
                  key={line.key}
                  line={line}
                  chosen={r.index === at}
                  index={r.index}
                  start={r.start}
                  headWidth={headWidth}
                  shown={shown}
                  columns={columns}
                  cell={cell}
                />
              )
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface MatrixLineProps extends Pick<MatrixProps, "columns" | "cell"> {
  line: Line;
  chosen: boolean;
  index: number;
  start: number;
  headWidth: number;
  shown: readonly VirtualItem[];
}

/** Stays as it is while others come and go: scrolling draws only new lines. */
const MatrixLine = memo(function MatrixLine({ line, chosen, index, start, headWidth, shown, columns, cell }: MatrixLineProps) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-chosen={chosen || undefined}
      className={`absolute left-0 flex w-full border-b border-line contain-strict ${line.group ? "bg-raised" : "bg-ground hover:bg-hover data-chosen:bg-chosen"}`}
      style={{ height: lineHeight, transform: `translateY(${start}px)` }}
    >
      <div
        role="rowheader"
        className="sticky left-0 z-[2] flex shrink-0 items-center gap-2 overflow-hidden bg-inherit px-2"
        style={{ width: headWidth }}
      >
        {line.head}
      </div>
      {!line.group &&
        shown.map((c, i) => (
          <div
            key={columns[c.index]?.key}
            role="cell"
            aria-colindex={c.index + 2}
            className="flex shrink-0 items-center px-2"
            style={{ width: c.size, marginLeft: i === 0 ? c.start : 0 }}
          >
            {cell(line.key, columns[c.index]!.key)}
          </div>
        ))}
    </div>
  );
});

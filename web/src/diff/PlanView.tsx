// Shows what a plan does: the worst first, only the rows that are on the screen.
import { useQuery } from "@tanstack/react-query";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useShortcuts } from "~/frame/shortcuts";
import { Button } from "~/ui/Button";
import { Copy } from "~/ui/Copy";
import { Visible } from "~/ui/Visible";
import { digestOf, needsLines, type PlanNode, type PlanObject, type Row, rowsOf, textOf } from "./flatten";
import type { Line } from "./lines";
import { type Risk, titles } from "./risk";
import { own } from "~/own";
import { signs } from "./signs";
import { patient } from "~/late";

interface PlanViewProps {
  objects: readonly PlanObject[];
  split: boolean;
  onSplit: (split: boolean) => void;
  /** The key of the object that the URL names. */
  at: string | undefined;
  onAt: (key: string) => void;
  /** Says which objects were on the screen to their end. */
  onSeen: (keys: string[]) => void;
}

const header = 48; // px, of the frame
const toolbar = 44; // px
const footer = 53; // px, of the decision

const heights: Record<Row["is"], number> = { group: 40, object: 36, field: 28, lines: 20, same: 24 };

export function PlanView({ objects, split, onSplit, at, onAt, onSeen }: PlanViewProps) {
  const [foldedGroups, setFoldedGroups] = useState<ReadonlySet<Risk>>(new Set(["unchanged"]));
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState(true);
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const lines = useLines(objects);
  const rows = useMemo(
    () => rowsOf(objects, { split, foldedGroups, turned, open, unfolded, lines }),
    [objects, split, foldedGroups, turned, open, unfolded, lines],
  );
  const places = useMemo(
    () => rows.flatMap((row, i) => (row.is === "object" ? [{ key: row.key, begin: i, end: endOf(rows, i) }] : [])),
    [rows],
  );

  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setMargin((list.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(document.body);
    return () => watch.disconnect();
  }, []);

  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: (i) => (split && rows[i]!.is === "field" ? 44 : heights[rows[i]!.is]),
    getItemKey: (i) => rows[i]!.key,
    overscan: 12,
    scrollMargin: margin,
    scrollPaddingStart: header + toolbar,
  });
  const items = virtual.getVirtualItems();

  // What is on the screen, without the rows that are only kept ready or behind the footer.
  const from = virtual.range?.startIndex;
  const bottom = (virtual.scrollOffset ?? 0) + (virtual.scrollRect?.height ?? 0) - footer;
  const to = items.findLast((item) => item.end <= bottom)?.index;
  useEffect(() => {
    if (from === undefined || to === undefined) return;
    const seen: string[] = [];
    for (let i = firstEndingAt(places, from); i < places.length && places[i]!.end <= to; i++) seen.push(places[i]!.key);
    if (seen.length > 0) onSeen(seen);
  }, [from, to, places, onSeen]);

  const go = (key: string) => {
    const place = places.find((p) => p.key === key);
    if (place) virtual.scrollToIndex(place.begin, { align: "start" });
  };
  const came = useRef(false);
  useEffect(() => {
    if (came.current || !at || margin === 0) return;
    came.current = true;
    go(at);
  });
  const step = (by: number) => {
    const index = places.findIndex((p) => p.key === at);
    const next = places[index < 0 ? 0 : Math.min(Math.max(index + by, 0), places.length - 1)];
    if (!next) return;
    onAt(next.key);
    go(next.key);
  };
  useShortcuts({ n: () => step(1), p: () => step(-1) });

  const turn = (key: string) => setTurned((now) => toggled(now, key));
  return (
    <div>
      <div className="sticky top-12 z-[5] flex h-11 items-center gap-2 border-b border-line bg-ground">
        <div role="group" aria-label="How differences are shown" className="flex">
          <Choice on={!split} onClick={() => onSplit(false)} first>
            Unified
          </Choice>
          <Choice on={split} onClick={() => onSplit(true)}>
            Side by side
          </Choice>
        </div>
        <Button
          look="quiet"
          onClick={() => {
            setOpen(!open);
            setTurned(new Set());
          }}
        >
          {open ? "Fold all" : "Open all"}
        </Button>
        <div className="ml-auto flex items-center gap-1">
          <Button look="quiet" onClick={() => step(-1)} title="Previous change (p)">
            <span aria-hidden="true">↑</span>
            <span className="sr-only">Previous change</span>
            <kbd aria-hidden="true" className="hidden font-mono text-xs text-dim sm:inline">
              p
            </kbd>
          </Button>
          <Button look="quiet" onClick={() => step(1)} title="Next change (n)">
            <span aria-hidden="true">↓</span>
            <span className="sr-only">Next change</span>
            <kbd aria-hidden="true" className="hidden font-mono text-xs text-dim sm:inline">
              n
            </kbd>
          </Button>
        </div>
      </div>
      <div ref={list} className="relative" style={{ height: virtual.getTotalSize() }}>
        <div className="absolute inset-x-0 top-0" style={{ transform: `translateY(${(items[0]?.start ?? margin) - margin}px)` }}>
          {items.map((item) => {
            const row = rows[item.index]!;
            return (
              <div key={row.key} data-index={item.index} ref={virtual.measureElement}>
                {row.is === "group" && <Group row={row} onTurn={() => setFoldedGroups((now) => toggled(now, row.risk))} />}
                {row.is === "object" && (
                  <ObjectRow row={row} chosen={row.key === at} onTurn={() => turn(row.key)} onAt={() => onAt(row.key)} />
                )}
                {row.is === "field" && <Field row={row} split={split} onLines={() => setUnfolded((now) => toggled(now, row.key))} />}
                {row.is === "lines" && <Lines row={row} />}
                {row.is === "same" && (
                  <button
                    type="button"
                    onClick={() => setUnfolded((now) => toggled(now, row.field))}
                    className="ml-6 block h-6 w-[calc(100%-24px)] bg-raised text-left font-mono text-xs text-dim hover:bg-hover"
                  >
                    <span className="px-3">⋯ {row.count} unchanged lines</span>
                  </button>
                )}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Choice({ on, first, onClick, children }: { on: boolean; first?: boolean; onClick: () => void; children: ReactNode }) {
  return (
    <button
      type="button"
      aria-pressed={on}
      onClick={onClick}
      className={`h-7 border border-line-strong px-2.5 whitespace-nowrap aria-pressed:bg-chosen aria-pressed:font-medium ${first ? "rounded-l-md" : "-ml-px rounded-r-md"}`}
    >
      {children}
    </button>
  );
}

function Group({ row, onTurn }: { row: Extract<Row, { is: "group" }>; onTurn: () => void }) {
  const worst = row.risk === "delete" || row.risk === "replace";
  return (
    <h2>
      <button
        type="button"
        aria-expanded={!row.folded}
        onClick={onTurn}
        className="flex h-10 w-full items-center gap-2 border-b border-line pt-2 text-left text-sm font-semibold"
      >
        <Arrow open={!row.folded} />
        <span className={worst ? "text-bad" : ""}>{titles[row.risk]}</span>
        <span className="text-xs font-normal text-dim tabular-nums">{row.count.toLocaleString("en")}</span>
      </button>
    </h2>
  );
}

interface ObjectRowProps {
  row: Extract<Row, { is: "object" }>;
  chosen: boolean;
  onTurn: () => void;
  onAt: () => void;
}

function ObjectRow({ row: { object, open }, chosen, onTurn, onAt }: ObjectRowProps) {
  const [sign, colour] = own(signs, object.action) ?? ["·", "text-dim"];
  return (
    <div
      data-chosen={chosen || undefined}
      className="flex min-h-9 items-center gap-2 border-b border-line pr-1 hover:bg-hover data-chosen:bg-chosen"
      aria-current={chosen ? "true" : undefined}
    >
      <button
        type="button"
        aria-expanded={open}
        onClick={() => {
          onTurn();
          onAt();
        }}
        className="flex min-w-0 flex-1 items-baseline gap-2 py-1.5 text-left"
      >
        <Arrow open={open} />
        <span aria-hidden="true" className={`w-3 shrink-0 text-center font-mono font-semibold ${colour}`}>
          {sign}
        </span>
        <span className={`shrink-0 ${colour}`}>{object.action}</span>
        <span className="min-w-0 font-mono break-all">
          {object.within.length > 0 && (
            <span className="text-dim">
              <bdi>
                <Visible>{object.within.join(" / ")}</Visible>
              </bdi>
              {" / "}
            </span>
          )}
          {object.type && (
            <span className="text-dim">
              <bdi>
                <Visible>{object.type}</Visible>
              </bdi>{" "}
            </span>
          )}
          <bdi className="font-medium">
            <Visible>{object.name}</Visible>
          </bdi>
        </span>
        {object.reason && (
          <span className="hidden min-w-0 truncate text-xs text-dim sm:inline">
            <Visible>{object.reason}</Visible>
          </span>
        )}
      </button>
      <span className="shrink-0 text-xs text-dim tabular-nums">
        {object.fields.length > 0 && `${object.fields.length} ${object.fields.length === 1 ? "field" : "fields"}`}
      </span>
      <Copy text={linkTo(object.key)} label={`Copy a link to ${object.name}`} />
    </div>
  );
}

/** The URL of this page at an object. */
function linkTo(key: string): string {
  const url = new URL(location.href);
  url.searchParams.set("at", key);
  url.hash = "";
  return url.href;
}

interface FieldProps {
  row: Extract<Row, { is: "field" }>;
  split: boolean;
  onLines: () => void;
}

function Field({ row: { field, lines }, split, onLines }: FieldProps) {
  const name = (
    <span className="font-mono text-xs break-all text-dim">
      <Visible>{field.name}</Visible>
    </span>
  );
  if (lines !== "none") {
    return (
      <div className="ml-6 flex min-h-7 flex-wrap items-center gap-x-3 border-l border-line pl-3">
        {name}
        {field.known_after_apply && <i className="font-mono text-xs text-dim">→ known after the apply</i>}
        {lines === "asked" && (
          <button type="button" className="text-xs text-link hover:underline" onClick={onLines}>
            Show its {Math.max(count(field.before), count(field.after)).toLocaleString("en")} lines
          </button>
        )}
      </div>
    );
  }
  return (
    <div
      className={`ml-6 grid min-h-7 items-start gap-x-3 leading-[18px] border-l border-line py-1 pl-3 ${split ? "sm:grid-cols-2" : "sm:grid-cols-[minmax(120px,240px)_1fr]"}`}
    >
      <div className={split ? "sm:col-span-2" : ""}>{name}</div>
      {split ? (
        <>
          <Value field={field} side="before" />
          <Value field={field} side="after" />
        </>
      ) : (
        <div className="flex min-w-0 flex-wrap items-baseline gap-x-2 font-mono text-xs">
          <Value field={field} side="before" />
          <span aria-hidden="true" className="text-dim">
            →
          </span>
          <Value field={field} side="after" />
        </div>
      )}
    </div>
  );
}

const shown = 600; // characters of a value, until somebody asks for the rest

function Value({ field, side }: { field: PlanNode; side: "before" | "after" }) {
  const [all, setAll] = useState(false);
  const label = side === "before" ? "before: " : "after: ";
  const ground = side === "before" ? "bg-bad-ground text-bad" : "bg-good-ground text-good";
  const say = (what: ReactNode, title?: string) => (
    <span className="min-w-0 font-mono text-xs text-dim" title={title}>
      <span className="sr-only">{label}</span>
      {what}
    </span>
  );
  if (side === "after" && field.known_after_apply) return say(<i>known after the apply</i>);
  const raw = field[side];
  if (raw === undefined || raw === "") return say(<i>none</i>);
  if (field.hidden) {
    const digest = digestOf(raw);
    if (!digest) return say("•••", "Sensitive: its value is shown to nobody. The digest of the effect covers it.");
    return (
      <span
        className={`min-w-0 rounded-md px-1 font-mono text-xs ${ground}`}
        title="Sensitive: its value is shown to nobody. This digest is the same whenever the value is the same in this place; its key does not leave the runner."
      >
        <span className="sr-only">{label}</span>•••<span className="sr-only"> digest</span> {digest}
      </span>
    );
  }
  const text = textOf(raw);
  const cut = !all && text.length > shown;
  return (
    <span className={`min-w-0 rounded-md px-1 font-mono text-xs break-all ${ground}`}>
      <span className="sr-only">{label}</span>
      <bdi>{text === "" ? <i>empty text</i> : <Visible>{cut ? text.slice(0, shown) : text}</Visible>}</bdi>
      {cut && (
        <button type="button" className="ml-1 text-link underline" onClick={() => setAll(true)}>
          {(text.length - shown).toLocaleString("en")} more characters
        </button>
      )}
    </span>
  );
}

function Lines({ row }: { row: Extract<Row, { is: "lines" }> }) {
  if (row.unified) return <OneLine line={row.unified} both />;
  return (
    <div className="ml-6 grid grid-cols-2 border-l border-line">
      <OneLine line={row.left} side="before" />
      <OneLine line={row.right} side="after" />
    </div>
  );
}

const grounds = { " ": "", "+": "bg-good-ground", "-": "bg-bad-ground" };

function OneLine({ line, both = false, side }: { line?: Line | undefined; both?: boolean; side?: "before" | "after" }) {
  const [all, setAll] = useState(false);
  if (!line) return <div className="min-h-5 border-r border-line bg-raised" />;
  const cut = !all && line.text.length > shown;
  const number = (n?: number) => <span className="w-9 shrink-0 pr-2 text-right text-dim tabular-nums select-none">{n}</span>;
  return (
    <div
      className={`flex min-h-5 min-w-0 font-mono text-xs leading-5 ${both ? "ml-6 border-l border-line" : "border-r border-line"} ${grounds[line.sign]}`}
    >
      {both ? (
        <>
          {number(line.before)}
          {number(line.after)}
        </>
      ) : (
        number(side === "before" ? line.before : line.after)
      )}
      <span className={`w-4 shrink-0 select-none ${line.sign === "+" ? "text-good" : line.sign === "-" ? "text-bad" : ""}`}>
        {line.sign === "-" ? "−" : line.sign}
      </span>
      <bdi className="min-w-0 break-all whitespace-pre-wrap">
        <Visible>{cut ? line.text.slice(0, shown) : line.text}</Visible>
        {cut && (
          <button type="button" className="ml-1 text-link underline" onClick={() => setAll(true)}>
            {(line.text.length - shown).toLocaleString("en")} more characters
          </button>
        )}
      </bdi>
    </div>
  );
}

function Arrow({ open }: { open: boolean }) {
  return (
    <span aria-hidden="true" className={`w-3 shrink-0 self-center text-center text-dim transition-transform ${open ? "rotate-90" : ""}`}>
      ›
    </span>
  );
}

const count = (value: string | undefined) => (value === undefined ? 0 : textOf(value).split("\n").length);

function endOf(rows: readonly Row[], begin: number): number {
  let end = begin;
  while (end + 1 < rows.length && rows[end + 1]!.is !== "object" && rows[end + 1]!.is !== "group") end++;
  return end;
}

/** The first of the places that ends at a row or after it; they are in order. */
function firstEndingAt(places: readonly { end: number }[], row: number): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle]!.end < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

function toggled<T>(set: ReadonlySet<T>, value: T): ReadonlySet<T> {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}

/** Compares lines; its code is loaded when the plan has some, and no text is compared twice. */
function useLines(objects: readonly PlanObject[]) {
  const needed = useMemo(() => needsLines(objects), [objects]);
  const { data } = useQuery({
    queryKey: ["code", "lines"],
    enabled: needed,
    staleTime: Infinity,
    queryFn: async () => {
      const { lineDiff } = await patient(() => import("./lines"))();
      const known = new Map<string, Line[]>();
      return (before: string, after: string) => {
        const key = `${before.length} ${before}${after}`;
        let found = known.get(key);
        if (!found) known.set(key, (found = lineDiff(before, after)));
        return found;
      };
    },
  });
  return data;
}

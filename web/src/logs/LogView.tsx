// A log, as a page or next to a step: only the lines on the screen are in the page.
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useShortcuts } from "~/frame/shortcuts";
import { Trouble } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Copy } from "~/ui/Copy";
import { exact } from "~/ui/time";
import { Glyph } from "~/ui/State";
import { Visible } from "~/ui/Visible";
import { spans } from "./ansi";
import { Download } from "./Download";
import { LongLine } from "./LongLine";
import type { LogRecord } from "./read";
import { LogStore } from "./store";
import { useFind } from "./useFind";
import { heightOf, lineHeight, type Range, rangeText, readRange, scrollTo, windowAt } from "./window";

interface LogViewProps {
  stream: string;
  /** The lines that the URL names, such as L10-L20. */
  lines: string | undefined;
  onLines: (lines: string | undefined) => void;
  /** What the URL searches for. */
  find?: string | undefined;
  onFind?: (find: string | undefined) => void;
  /** It begins at the first line that says that it is an error. */
  atError?: boolean;
  /** The command that shows the same, or a link. */
  command?: ReactNode;
}

/** Beyond so many lines, errors are looked for when somebody asks. */
const marksUnasked = 200_000;

export default function LogView(props: LogViewProps) {
  return <View key={props.stream} {...props} />;
}

function View({ stream: id, lines: named, onLines, find, onFind, atError = false, command }: LogViewProps) {
  const [store] = useState(() => new LogStore(id));
  useEffect(() => store.open(), [store]);
  const { stream, lines, error, live } = useSyncExternalStore(store.subscribe, store.snapshot);
  const range = useMemo(() => readRange(named), [named]);

  const box = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState({ top: 0, height: 0 });
  const [follows, setFollows] = useState(named === undefined);
  // A log that is followed begins at its end: nothing of its beginning is read for it.
  const window_ = windowAt(follows ? heightOf(lines) : scroll.top, scroll.height, lines);
  useEffect(() => {
    if (scroll.height > 0) store.look({ first: window_.first, last: window_.last });
  }, [store, scroll.height, window_.first, window_.last, lines]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setScroll((now) => ({ ...now, height: element.clientHeight })));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const goTo = (line: number, place: "top" | "middle" = "middle") => {
    setFollows(false);
    box.current?.scrollTo({ top: scrollTo(line, box.current.clientHeight, lines, place) });
  };
  // The end stays in sight while lines come.
  useLayoutEffect(() => {
    if (follows && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [follows, lines, scroll.height]);
  const came = useRef(false);
  useEffect(() => {
    if (came.current || !range || lines === 0 || scroll.height === 0) return;
    came.current = true;
    goTo(Math.min(range.from, lines));
  });

  const [text, setText] = useState(find ?? "");
  const [marks, setMarks] = useState(false);
  const ended = stream !== undefined && stream.state !== "open";
  const errors = useFind(id, ended && (marks || lines <= marksUnasked) ? { level: "error" } : {}, lines);
  const atFirst = useRef(false);
  useEffect(() => {
    const first = errors?.hits[0];
    if (!atError || atFirst.current || came.current || range || !first || scroll.height === 0) return;
    atFirst.current = true;
    goTo(first.seq);
  });
  const found = useFind(id, text ? { contains: text } : {}, lines);
  const [hit, setHit] = useState(-1);
  const step = (by: number, among: LogRecord[]) => {
    if (among.length === 0) return;
    const next = (hit + by + among.length) % among.length;
    setHit(next);
    goTo(among[next]!.seq);
  };
  // What was typed is shown as soon as it is found.
  const typed = useRef(false);
  useEffect(() => {
    if (!typed.current || !found?.hits.length) return;
    typed.current = false;
    step(1, found.hits);
  });
  const searchBox = useRef<HTMLInputElement>(null);
  useShortcuts({ "/": () => searchBox.current?.focus() });
  const hits = useMemo(() => new Set(found?.hits.map((h) => h.seq)), [found]);
  const current = found?.hits[hit]?.seq;

  const [long, setLong] = useState<number>();
  const choose = (line: number, extend: boolean) => {
    const next: Range = extend && range ? { from: Math.min(range.from, line), to: Math.max(range.to, line) } : { from: line, to: line };
    came.current = true;
    onLines(!extend && range?.from === line && range.to === line ? undefined : rangeText(next));
  };
  const began = stream ? Date.parse(stream.created_at) : 0;
  const digits = String(Math.max(lines, 100)).length;

  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex min-h-10 flex-wrap items-center gap-2 border-b border-line py-1">
        <input
          ref={searchBox}
          type="search"
          aria-label="Search in this log"
          placeholder="Search in this log"
          value={text}
          maxLength={200}
          onChange={(e) => {
            setText(e.target.value);
            setHit(-1);
            typed.current = true;
            onFind?.(e.target.value || undefined);
          }}
          onKeyDown={(e) => {
            if (e.key === "Enter" && found) step(e.shiftKey ? -1 : 1, found.hits);
            if (e.key === "Escape") e.currentTarget.blur();
          }}
          className="h-8 w-40 min-w-0 flex-1 rounded-md border border-line-strong bg-ground px-2 sm:max-w-72"
        />
        {found && <Matches found={found} hit={hit} lines={lines} onStep={(by) => step(by, found.hits)} />}
        {errors && errors.hits.length > 0 && (
          <Button
            look="quiet"
            className="text-bad"
            title="Go to the next line that says that it is an error"
            onClick={() =>
              goTo((errors.hits.find((e) => e.seq > window_.first + (window_.last - window_.first) / 2 + 1) ?? errors.hits[0]!).seq)
            }
          >
            <Glyph tone="bad" size={12} />
            {errors.hits.length.toLocaleString("en")}
            {errors.tooMany ? "+" : ""} {errors.hits.length === 1 ? "error" : "errors"}
          </Button>
        )}
        {ended && !marks && lines > marksUnasked && (
          <Button look="quiet" onClick={() => setMarks(true)}>
            Find errors
          </Button>
        )}
        <span className="ml-auto flex items-center gap-1">
          {range && (
            <span className="inline-flex items-center font-mono text-xs text-dim">
              {rangeText(range)}
              <Copy text={location.href} label={`Copy a link to ${rangeText(range)}`} />
            </span>
          )}
          {stream?.state === "open" && (
            <Button
              look="quiet"
              aria-pressed={follows}
              className="aria-pressed:bg-chosen"
              onClick={() => setFollows(!follows)}
              title="Keep the newest line in sight"
            >
              {follows ? "Following" : "Follow"}
            </Button>
          )}
          {stream && <Download stream={id} lines={lines} />}
        </span>
      </div>
      {error !== undefined && <Trouble error={error} retry={() => store.again()} />}
      <div className="relative min-h-0 flex-1">
        <div
          ref={box}
          tabIndex={0}
          role="region"
          aria-label="Lines of the log"
          onScroll={(e) => {
            const { scrollTop: top, scrollHeight, clientHeight: height } = e.currentTarget;
            setScroll({ top, height });
            setFollows(top + height >= scrollHeight - lineHeight / 2);
          }}
          className="h-full overflow-auto overscroll-contain bg-raised font-mono text-xs"
        >
          {stream && lines === 0 && (
            <p className="p-3 font-sans text-sm text-dim">
              {ended ? "Nothing was written." : "Nothing was written yet; lines appear here."}
            </p>
          )}
          <div className="relative min-w-max" style={{ height: heightOf(lines) }}>
            <div className="absolute inset-x-0" style={{ transform: `translateY(${window_.top}px)` }}>
              {Array.from({ length: Math.max(0, window_.last - window_.first + 1) }, (_, i) => {
                const seq = window_.first + i;
                return (
                  <Line
                    key={seq}
                    seq={seq}
                    record={store.line(seq)}
                    began={began}
                    digits={digits}
                    chosen={range !== undefined && seq >= range.from && seq <= range.to}
                    hit={hits.has(seq) ? (seq === current ? "this" : "one") : undefined}
                    onChoose={choose}
                    onLong={setLong}
                  />
                );
              })}
            </div>
          </div>
        </div>
        {errors && errors.hits.length > 0 && lines > 0 && <Marks seqs={errors.hits.map((e) => e.seq)} lines={lines} />}
      </div>
      {long !== undefined && <LongLine stream={id} seq={long} onClose={() => setLong(undefined)} />}
      <footer className="flex min-h-8 flex-wrap items-center gap-x-3 gap-y-0.5 border-t border-line py-1 text-xs text-dim">
        {stream && (
          <>
            <Count stream={stream} lines={lines} />
            {ended ? (
              <span className="inline-flex min-w-0 items-center font-mono" title={stream.sha256}>
                sha256 {stream.sha256.slice(0, 12)}…
                <Copy text={stream.sha256} label="Copy the hash of all lines" />
              </span>
            ) : (
              <span className="inline-flex items-center gap-1.5">
                <Glyph tone={live ? "busy" : "unknown"} size={12} />
                {live ? "lines come as they are written" : "cut off; trying again"}
              </span>
            )}
            {stream.late_redaction && (
              <span className="text-warn" title="Lines before that may show it">
                a secret became known while it ran
              </span>
            )}
          </>
        )}
        {command && <span className="ml-auto min-w-0">{command}</span>}
      </footer>
    </div>
  );
}

function Count({
  stream,
  lines,
}: {
  stream: { gaps: { reason: string; lines: number }[]; complete: boolean; state: string };
  lines: number;
}) {
  const missing = (reason: string) => stream.gaps.filter((g) => g.reason === reason).reduce((sum, g) => sum + g.lines, 0);
  const expired = missing("expired");
  const dropped = missing("dropped");
  return (
    <>
      <span className="tabular-nums">
        {(lines - expired).toLocaleString("en")} of {lines.toLocaleString("en")} lines
      </span>
      {expired > 0 && <span className="text-warn">{expired.toLocaleString("en")} are no longer kept</span>}
      {dropped > 0 && <span className="text-warn">{dropped.toLocaleString("en")} were dropped by the runner</span>}
      {stream.state === "closed" && <span className="text-warn">its end is not known: the attempt was given up</span>}
    </>
  );
}

interface MatchesProps {
  found: { hits: LogRecord[]; upTo: number; done: boolean; tooMany: boolean; error?: unknown };
  hit: number;
  lines: number;
  onStep: (by: number) => void;
}

function Matches({ found, hit, lines, onStep }: MatchesProps) {
  const n = found.hits.length;
  return (
    <span className="inline-flex items-center gap-1 text-xs whitespace-nowrap text-dim tabular-nums" role="status">
      {found.error ? (
        <span className="text-bad">the search failed</span>
      ) : !found.done ? (
        `${n} so far, ${Math.min(found.upTo, lines).toLocaleString("en")} lines looked at`
      ) : n === 0 ? (
        "not found"
      ) : (
        `${hit >= 0 ? `${hit + 1} of ` : ""}${n.toLocaleString("en")}${found.tooMany ? ` in the first ${found.upTo.toLocaleString("en")} lines` : ""}`
      )}
      {n > 0 && (
        <>
          <Button look="quiet" className="h-6! px-1.5!" aria-label="Previous match" onClick={() => onStep(-1)}>
            ↑
          </Button>
          <Button look="quiet" className="h-6! px-1.5!" aria-label="Next match" onClick={() => onStep(1)}>
            ↓
          </Button>
        </>
      )}
    </span>
  );
}

/** Where errors are, at the scroll bar. */
function Marks({ seqs, lines }: { seqs: number[]; lines: number }) {
  // One mark for all that fall onto the same place.
  const places = [...new Set(seqs.map((seq) => Math.round(((seq - 1) / lines) * 500)))];
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 4 500"
      preserveAspectRatio="none"
      className="pointer-events-none absolute inset-y-0 right-0 h-full w-1.5 text-bad"
    >
      {places.map((y) => (
        <rect key={y} x="0" y={y} width="4" height="2" fill="currentColor" />
      ))}
    </svg>
  );
}

/** Characters of a line that are shown in its row. */
const shown = 2_000;

const widths: Record<number, string> = { 3: "w-10", 4: "w-12", 5: "w-14", 6: "w-16", 7: "w-18" };

interface LineProps {
  seq: number;
  record: LogRecord | "gone" | undefined;
  began: number;
  digits: number;
  chosen: boolean;
  hit: "this" | "one" | undefined;
  onChoose: (seq: number, extend: boolean) => void;
  onLong: (seq: number) => void;
}

const grounds = { error: "bg-bad-ground", warning: "bg-warn-ground" };

function Line({ seq, record, began, digits, chosen, hit, onChoose, onLong }: LineProps) {
  const here = typeof record === "object" ? record : undefined;
  const ground = chosen ? "bg-chosen" : hit === "this" ? "bg-ask-ground" : here?.level ? grounds[here.level] : "hover:bg-hover";
  return (
    <div className={`flex h-5 leading-5 whitespace-pre ${ground}`}>
      <button
        type="button"
        tabIndex={-1}
        aria-label={`Line ${seq}: link to it`}
        aria-pressed={chosen}
        onClick={(e) => onChoose(seq, e.shiftKey)}
        className={`sticky left-0 shrink-0 border-r border-line bg-raised pr-2 text-right text-dim tabular-nums select-none hover:text-ink ${widths[digits] ?? "w-20"}`}
      >
        {seq}
      </button>
      <span
        className="hidden w-16 shrink-0 pr-2 text-right text-dim tabular-nums select-none sm:inline"
        title={here && exact(Date.parse(here.time))}
      >
        {here && offset(Date.parse(here.time) - began)}
      </span>
      <span className="w-4 shrink-0 text-center select-none">
        {hit ? (
          <span className="text-ask" title="matches the search">
            ▸
          </span>
        ) : here?.level === "error" ? (
          <span className="text-bad" title="an error">
            ✕
          </span>
        ) : here?.level === "warning" ? (
          <span className="text-warn" title="a warning">
            !
          </span>
        ) : here?.source === "agent" ? (
          <span className="text-dim" title="a remark of the runner">
            #
          </span>
        ) : null}
      </span>
      {record === "gone" ? (
        <i className="text-dim">no longer kept</i>
      ) : here?.lost_lines ? (
        <span className="text-warn">
          <Visible>{here.text}</Visible>
        </span>
      ) : here ? (
        <Text record={here} onLong={() => onLong(seq)} />
      ) : (
        <span className="my-1 h-3 w-64 rounded-md bg-hover" />
      )}
    </div>
  );
}

function Text({ record, onLong }: { record: LogRecord; onLong: () => void }) {
  const long = record.text.length > shown;
  return (
    <>
      <bdi className={`pr-4 ${record.source === "agent" ? "text-dim" : ""}`}>
        {spans(long ? record.text.slice(0, shown) : record.text).map(({ text, look }, i) => (
          <span key={i} className={look || undefined}>
            <Visible>{text}</Visible>
          </span>
        ))}
      </bdi>
      {(long || record.continues) && (
        <button type="button" onClick={onLong} className="sticky right-2 shrink-0 rounded-md bg-chosen px-2 font-sans text-link">
          {record.continues ? "the line goes on" : `${(record.text.length - shown).toLocaleString("en")} more characters`}
        </button>
      )}
    </>
  );
}

/** A time since the start: "0.1", "12.3", "4:05", "1:02:03". */
function offset(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 60) return s.toFixed(1);
  const two = (n: number) => String(Math.floor(n)).padStart(2, "0");
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two((s / 60) % 60)}:${two(s % 60)}`;
}

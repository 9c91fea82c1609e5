// Keeps the lines of one log that are on the screen and around it.
import { type LogRecord, type LogStream, readRecords, readStream, tail } from "./read";
import { pageOf, pageSize, pagesToDrop, pagesToFetch, type Window } from "./window";

/** What a view shows; a new one for each change. */
export interface Shown {
  stream?: LogStream;
  lines: number;
  error?: unknown;
  /** Lines come as they are written. */
  live: boolean;
}

type Page = (LogRecord | undefined)[];

/** The store of one stream, for as long as it is shown. */
export class LogStore {
  private shown: Shown = { lines: 0, live: false };
  private readonly pages = new Map<number, Page>();
  private readonly fetching = new Set<number>();
  private readonly listeners = new Set<() => void>();
  private end = new AbortController();
  private window: Pick<Window, "first" | "last"> = { first: 1, last: 0 };
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {}

  /** Begins to read; call the result to end. */
  open(): () => void {
    this.end = new AbortController();
    void this.start();
    return () => {
      this.end.abort();
      clearTimeout(this.timer);
    };
  }

  private async start(): Promise<void> {
    try {
      const stream = await readStream(this.id, this.end.signal);
      this.set({ stream, lines: stream.lines, live: stream.state === "open" });
      if (stream.state !== "open") return;
      await tail(
        this.id,
        stream.lines,
        {
          record: (record) => this.add(record),
          end: (ended) => this.set({ stream: ended, lines: ended.lines, live: false }),
          live: (live) => this.set({ live }),
        },
        this.end.signal,
      );
    } catch (error) {
      if (!this.end.signal.aborted) this.set({ error });
    }
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): Shown => this.shown;

  /** A line; "gone" when it is past its retention, undefined while it is not here. */
  line(seq: number): LogRecord | "gone" | undefined {
    const page = this.pages.get(pageOf(seq));
    if (!page) return this.expired(seq) ? "gone" : undefined;
    return page[(seq - 1) % pageSize] ?? (this.expired(seq) ? "gone" : undefined);
  }

  /** Says which lines are on the screen: they are fetched, and what is far away goes. */
  look(window: Pick<Window, "first" | "last">): void {
    this.window = window;
    for (const page of pagesToFetch(window, this.shown.lines, (p) => this.has(p))) void this.fetch(page);
    for (const page of pagesToDrop(this.pages.keys(), window)) this.pages.delete(page);
  }

  private has(page: number): boolean {
    if (this.fetching.has(page)) return true;
    const kept = this.pages.get(page);
    const last = Math.min(pageSize, this.shown.lines - page * pageSize);
    // A page may have been read before its last lines were written.
    if (kept) return kept.length >= last;
    return last <= 0 || this.expired(page * pageSize + last);
  }

  private expired(seq: number): boolean {
    return this.shown.stream?.gaps.some((g) => g.reason === "expired" && seq >= g.seq && seq < g.seq + g.lines) ?? false;
  }

  private async fetch(page: number): Promise<void> {
    this.fetching.add(page);
    try {
      const found: Page = [];
      const end = (page + 1) * pageSize;
      for (let after = page * pageSize; after < end;) {
        const { items, next } = await readRecords(this.id, { after, limit: end - after }, this.end.signal);
        for (const record of items) if (record.seq <= end) found[(record.seq - 1) % pageSize] = record;
        if (next === undefined) break;
        after = next;
      }
      const kept = this.pages.get(page);
      if (!kept || kept.length < found.length) this.pages.set(page, found);
      this.set({ error: undefined });
    } catch (error) {
      if (!this.end.signal.aborted) this.set({ error });
    } finally {
      this.fetching.delete(page);
    }
  }

  /** Reads again what failed. */
  again(): void {
    this.set({ error: undefined });
    if (this.shown.stream) this.look(this.window);
    else void this.start();
  }

  private add(record: LogRecord): void {
    const page = pageOf(record.seq);
    const place = (record.seq - 1) % pageSize;
    const kept = this.pages.get(page) ?? (place === 0 ? [] : undefined);
    if (kept && kept.length === place) {
      kept.push(record);
      this.pages.set(page, kept);
    }
    if (record.seq > this.shown.lines) this.shown = { ...this.shown, lines: record.seq };
    // Many lines at once are shown at once.
    this.timer ??= setTimeout(() => this.set({}), 50);
  }

  private set(next: Partial<Shown>): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.shown = { ...this.shown, ...next };
    this.listeners.forEach((listener) => listener());
  }
}

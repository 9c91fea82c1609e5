// Reads log streams: through the control plane's own address, with the session of the page.
import { Problem } from "@berth/client";
import { createParser } from "eventsource-parser";

export interface LogRecord {
  seq: number;
  time: string;
  source: "stdout" | "stderr" | "agent";
  text: string;
  continues?: boolean;
  lost_lines?: number;
  level?: "error" | "warning";
}

export interface LogStream {
  id: string;
  install_id?: string;
  job_id?: string;
  run_id?: string;
  attempt: number;
  state: "open" | "finished" | "closed";
  lines: number;
  bytes: number;
  sha256: string;
  complete: boolean;
  gaps: { reason: "dropped" | "expired"; seq: number; lines: number }[];
  late_redaction: boolean;
  created_at: string;
  finished_at?: string;
}

export interface RecordPage {
  items: LogRecord[];
  next?: number;
}

export interface RecordQuery {
  after?: number;
  limit?: number;
  contains?: string;
  level?: "error" | "warning";
}

const urlOf = (stream: string, rest = "", query: object = {}) => {
  const url = new URL(`/logs/streams/${encodeURIComponent(stream)}${rest}`, location.origin);
  for (const [name, value] of Object.entries(query) as [string, string | number | undefined][])
    if (value !== undefined) url.searchParams.set(name, String(value));
  return url;
};

async function get<T>(url: URL, signal?: AbortSignal): Promise<T> {
  const answer = await fetch(url, { headers: { Accept: "application/json" }, ...(signal ? { signal } : {}) });
  if (answer.ok) return (await answer.json()) as T;
  const body = (await answer.json().catch(() => ({}))) as object;
  throw new Problem({ title: answer.statusText, ...body, status: answer.status });
}

export const readStream = (stream: string, signal?: AbortSignal) => get<LogStream>(urlOf(stream), signal);

export const readRecords = (stream: string, query: RecordQuery, signal?: AbortSignal) =>
  get<RecordPage>(urlOf(stream, "/records", query), signal);

interface TailHandlers {
  record: (record: LogRecord) => void;
  end: (stream: LogStream) => void;
  /** Whether lines come as they are written; otherwise it tries again. */
  live: (live: boolean) => void;
}

const firstPause = 500; // ms
const maxPause = 10_000;

/** Follows a stream until its end, or until the signal aborts. */
export async function tail(stream: string, after: number, handlers: TailHandlers, signal: AbortSignal): Promise<void> {
  let last = after;
  let pause = firstPause;
  while (!signal.aborted) {
    let ended = false;
    try {
      const answer = await fetch(urlOf(stream, "/tail", { after: last }), { headers: { Accept: "text/event-stream" }, signal });
      if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) return handlers.live(false);
      if (answer.ok && answer.body) {
        handlers.live(true);
        pause = firstPause;
        const parser = createParser({
          onEvent: ({ event, data }) => {
            if (event === "record") {
              const record = JSON.parse(data) as LogRecord;
              last = record.seq;
              handlers.record(record);
            } else if (event === "end") {
              ended = true;
              handlers.end(JSON.parse(data) as LogStream);
            }
          },
        });
        const chunks = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let read = await chunks.read(); !read.done; read = await chunks.read()) parser.feed(read.value);
      }
    } catch {
      // Cut off: try again.
    }
    if (ended || signal.aborted) return;
    handlers.live(false);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, maxPause);
  }
}

import { useEffect, useState } from "react";
import { type LogRecord, readRecords } from "./read";

export interface Found {
  hits: LogRecord[];
  /** Up to which line was looked. */
  upTo: number;
  /** All lines were looked at, or there are too many hits. */
  done: boolean;
  tooMany: boolean;
  error?: unknown;
}

const mostHits = 2_000;

/** Searches a stream in the control plane: for a text, or for lines of a level. Nothing is searched without either. */
export function useFind(stream: string, query: { contains?: string; level?: "error" | "warning" }, lines: number): Found | undefined {
  const { contains, level } = query;
  const key = contains || level ? `${stream} ${level ?? ""} ${contains ?? ""}` : undefined;
  const [found, setFound] = useState<{ key: string; found: Found }>();
  const ready = lines > 0;
  useEffect(() => {
    if (!key || !ready) return;
    const end = new AbortController();
    const search = async () => {
      let hits: LogRecord[] = [];
      let after = 0;
      const say = (rest: Partial<Found>) => setFound({ key, found: { hits, upTo: after, done: false, tooMany: false, ...rest } });
      try {
        for (;;) {
          const page = await readRecords(
            stream,
            { after, limit: 500, ...(contains ? { contains } : {}), ...(level ? { level } : {}) },
            end.signal,
          );
          hits = [...hits, ...page.items];
          after = page.next ?? Math.max(after, hits.at(-1)?.seq ?? 0);
          if (page.next === undefined) return say({ done: true, upTo: Infinity });
          if (hits.length >= mostHits) return say({ done: true, tooMany: true });
          say({});
        }
      } catch (error) {
        if (!end.signal.aborted) say({ done: true, error });
      }
    };
    // While somebody types, nothing is asked.
    const timer = setTimeout(() => void search(), contains ? 250 : 0);
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [key, ready, stream, contains, level]);
  return key && found?.key === key ? found.found : key ? { hits: [], upTo: 0, done: false, tooMany: false } : undefined;
}

// Reads again what events make old.
import type { Query, QueryClient } from "@tanstack/react-query";
import type { Key } from "~/api/client";
import { affects, type OrgEvent } from "./affects";

/**
 * Joins events to a cache. What is being read when an event comes is not broken off, so
 * that a storm of events keeps no slow answer away; it is read once more after, since the
 * answer may be of before the event.
 */
export class Refresh {
  private readonly onceMore = new Set<object>(); // queries
  private readonly unsubscribe: () => void;

  constructor(private readonly cache: QueryClient) {
    this.unsubscribe = cache.getQueryCache().subscribe(({ type, query }) => {
      if (type === "removed") this.onceMore.delete(query);
      if (type !== "updated" || query.state.fetchStatus === "fetching" || !this.onceMore.delete(query)) return;
      queueMicrotask(() => void cache.invalidateQueries({ predicate: (q) => q === query }));
    });
  }

  /** These happened. */
  events(events: readonly OrgEvent[]): void {
    this.old(({ queryKey }) => events.some((e) => affects(e, queryKey as unknown as Key)));
  }

  /** Events may be gone that nobody saw. */
  all(): void {
    this.old(() => true);
  }

  /** The stream is back. What was asked while it was cut may have failed, or still wait, for the same reason. */
  back(): void {
    void this.cache.invalidateQueries({ predicate: ({ state }) => state.status === "error" || state.fetchStatus !== "idle" });
  }

  private old(is: (query: Query) => boolean): void {
    void this.cache.invalidateQueries({
      predicate: (query) => {
        if (!is(query)) return false;
        if (query.state.fetchStatus !== "fetching") return true;
        this.onceMore.add(query);
        return false;
      },
    });
  }

  end(): void {
    this.unsubscribe();
  }
}

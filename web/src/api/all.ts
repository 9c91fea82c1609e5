// Reads lists to their end.
import { useInfiniteQuery } from "@tanstack/react-query";
import { type Answer, type Ask, type Key, reading, type ReadPath } from "./client";

type Paged = { items: unknown[]; next?: string };

/** Lists that answer page by page. */
export type PagedPath = { [P in ReadPath]: Answer<P> extends Paged ? P : never }[ReadPath];

type Items<P extends PagedPath> = Answer<P>["items" & keyof Answer<P>];

/**
 * A list, page after page: `more` reads the next one. What no event tells of is read again
 * after as many milliseconds as `again` says.
 */
export function usePages<P extends PagedPath>(path: P, ask: Ask<P>, again?: (items: Items<P>) => number | false) {
  const base = ask as { path?: Record<string, unknown>; query?: Record<string, unknown> };
  const read = reading as unknown as (
    path: P,
    ask: unknown,
  ) => { queryFn: (context: { signal: AbortSignal }) => Promise<Answer<P> & Paged> };
  const found = useInfiniteQuery({
    // Events find it by the path, as they find what is read at once.
    queryKey: [path, { ...base, pages: true }] as unknown as Key,
    queryFn: ({ pageParam, signal }) => read(path, { ...base, query: { ...base.query, after: pageParam } }).queryFn({ signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next,
    refetchInterval: ({ state }) => (again && state.data ? again(state.data.pages.flatMap((page) => page.items) as Items<P>) : false),
  });
  const items = found.data?.pages.flatMap((page) => page.items) as Items<P> | undefined;
  return { ...found, data: items, more: found.hasNextPage ? () => void found.fetchNextPage() : undefined };
}

// Reads and changes what the control plane knows: the client of the API, with the
// session cookie that the browser adds.
import { Berth, ok, type paths, Problem } from "@berth/client";
import { QueryClient, queryOptions, type UseQueryOptions } from "@tanstack/react-query";

export const berth = new Berth({ url: location.origin, cookies: true, patienceMs: 5_000 });

/** Paths that can be read. */
export type ReadPath = { [P in keyof paths]: paths[P] extends { get: { responses: object } } ? P : never }[keyof paths];

type Operation<P extends ReadPath> = paths[P] extends { get: infer O } ? O : never;

/** What reading a path answers. */
export type Answer<P extends ReadPath> =
  Operation<P> extends { responses: { 200: { content: { "application/json": infer A } } } } ? A : never;

type Parameters<P extends ReadPath> = Operation<P> extends { parameters: { path: infer Path } } ? { path: Path } : { path?: undefined };
type Query<P extends ReadPath> =
  Operation<P> extends { parameters: { query?: infer Q } } ? { query?: Q | undefined } : { query?: undefined };

/** What a path is read with. */
export type Ask<P extends ReadPath> = Parameters<P> & Query<P>;

/** The key of everything that is read: its path in the contract, and with what. Events find by it what they change. */
export type Key = readonly [path: string, ask: { path?: Record<string, unknown>; query?: Record<string, unknown> }];

/** How to read a path, for useQuery and for loaders. */
export function reading<P extends ReadPath>(path: P, ...[ask]: Parameters<P> extends { path?: undefined } ? [Ask<P>?] : [Ask<P>]) {
  const params = { path: ask?.path, query: ask?.query };
  return queryOptions({
    queryKey: [path, params] as unknown as Key,
    queryFn: async ({ signal }): Promise<Answer<P>> => {
      const get = berth.GET as unknown as (path: string, init: unknown) => Promise<{ data?: Answer<P> }>;
      return ok<Answer<P>>(get(path, { params, signal }));
    },
  });
}

/** One cache for all pages. Events say what is old; nothing is asked for again by the clock. */
export function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 60_000,
        gcTime: 10 * 60_000,
        refetchOnWindowFocus: false,
        retry: (count, error) => !(error instanceof Problem) && count < 2,
      } satisfies Partial<UseQueryOptions>,
    },
  });
}

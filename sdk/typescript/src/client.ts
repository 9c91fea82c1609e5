import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./api.gen.js";
import { notUnderstood } from "./errors.js";
import { type Options, rest, sender } from "./send.js";

export type Schemas = components["schemas"];

/** The `limit` of a page unless the query says otherwise: the most that is given. */
const pageSize = 500;

/** How long one question is held by the service: shorter than the minute after which many proxies give up. */
const longPoll = "30s";

/** The pause after an answer that was not held back and has no news, as of a proxy that answers from its memory. */
const unheld = 1_000;

type Query<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never;

type Page<P extends keyof paths> = paths[P] extends { get: { responses: { 200: { content: { "application/json": infer Body } } } } } ? Body : never;

/** The paths whose GET answers pages. */
export type ListPath = {
  [P in keyof paths]: Page<P> extends { items: readonly unknown[]; next?: string } ? ("after" extends keyof Query<P> ? P : never) : never;
}[keyof paths];

/** What a list has. */
export type Item<P extends ListPath> = Page<P> extends { items: readonly (infer I)[] } ? I : never;

type PathParameters<P extends keyof paths> = paths[P] extends { parameters: { path: infer V } } ? { path: V } : { path?: never };

/** What to list: the names in the path, filters, the size of a page and where to begin. */
export type ListInit<P extends ListPath> = PathParameters<P> & { query?: Query<P>; signal?: AbortSignal };

export interface WaitInit<T> {
  /** Ends the wait sooner; it sees every new version. */
  until?: (thing: T) => boolean;
  signal?: AbortSignal;
}

/** The options that the environment gives: BERTH_URL, BERTH_TOKEN and BERTH_ORG, which the command line reads too. */
export function fromEnvironment(env: Record<string, string | undefined>): Options {
  return { url: env["BERTH_URL"] ?? "", token: env["BERTH_TOKEN"] ?? "", org: env["BERTH_ORG"] || undefined };
}

/**
 * The body of an answer.
 *
 *     const me = await ok(berth.GET("/me"));
 */
export async function ok<T>(answer: Promise<{ data?: T }>): Promise<T> {
  const { data } = await answer;
  return data as T; // an answer other than 2xx was thrown
}

/**
 * Calls the control plane. GET, POST and the others take every operation of the
 * contract, typed by its path; what is not 2xx is thrown.
 */
export class Berth {
  readonly GET: Client<paths>["GET"];
  readonly PUT: Client<paths>["PUT"];
  readonly POST: Client<paths>["POST"];
  readonly PATCH: Client<paths>["PATCH"];
  readonly DELETE: Client<paths>["DELETE"];

  /** Makes a client; it calls nobody. Throws when the URL or the token cannot be right. */
  constructor(options: Options) {
    const { GET, PUT, POST, PATCH, DELETE } = createClient<paths>({ baseUrl: options.url.replace(/\/+$/, ""), fetch: sender(options) });
    this.GET = GET;
    this.PUT = PUT;
    this.POST = POST;
    this.PATCH = PATCH;
    this.DELETE = DELETE;
  }

  /**
   * Lists all items, page after page while they are read.
   *
   *     for await (const install of berth.list("/installs", { query: { app: "hello" } })) …
   */
  async *list<P extends ListPath>(path: P, ...[init]: PathParameters<P> extends { path?: never } ? [ListInit<P>?] : [ListInit<P>]): AsyncGenerator<Item<P>, void, void> {
    const query = (init?.query ?? {}) as { limit?: number; after?: string };
    for (let after = query.after; ; ) {
      const page = await this.#page(path, { path: init?.path, query: { limit: pageSize, ...query, after } }, init?.signal);
      yield* page.items as Item<P>[];
      if (!page.next) return;
      if (page.next === after) throw new Error(`the list does not continue after "${after}"`);
      after = page.next;
    }
  }

  /** Reads one page. The types of path and query are checked by list. */
  async #page(path: string, params: unknown, signal?: AbortSignal): Promise<{ items: unknown[]; next?: string }> {
    const get = this.GET as unknown as (path: string, init: unknown) => Promise<{ data?: { items: unknown[]; next?: string } }>;
    return understood(await ok(get(path, { params, signal })));
  }

  /**
   * Waits until a workflow has ended; look at `state` for how it came out. One
   * that needs a decision waits for days: pass a signal, or stop with `until`.
   */
  async awaitWorkflow(id: string, init: WaitInit<Schemas["Workflow"]> = {}): Promise<Schemas["Workflow"]> {
    const get = (query: Waiting) => this.GET("/workflows/{workflow}", { params: { path: { workflow: id }, query }, ...signalOf(init) });
    return wait(get, (w) => ["succeeded", "failed", "cancelled"].includes(w.state), init);
  }

  /** Waits until the builds of a config have ended: it is then `released`, with its release, or `failed`. */
  async awaitConfig(id: string, init: WaitInit<Schemas["Config"]> = {}): Promise<Schemas["Config"]> {
    const get = (query: Waiting) => this.GET("/configs/{config}", { params: { path: { config: id }, query }, ...signalOf(init) });
    return wait(get, (config) => config.state !== "building", init);
  }

  /** Waits until a build has succeeded, failed or been cancelled. */
  async awaitBuild(id: string, init: WaitInit<Schemas["Build"]> = {}): Promise<Schemas["Build"]> {
    const get = (query: Waiting) => this.GET("/builds/{build}", { params: { path: { build: id }, query }, ...signalOf(init) });
    return wait(get, (build) => build.state !== "queued" && build.state !== "running", init);
  }
}

interface Waiting {
  wait?: string;
  after_version: number;
}

function signalOf({ signal }: { signal?: AbortSignal }): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}

/** Reads a thing, at once and then after each of its versions, until it is done. */
async function wait<T extends { version: number }>(get: (query: Waiting) => Promise<{ data?: T }>, done: (thing: T) => boolean, { until, signal }: WaitInit<T>): Promise<T> {
  for (let query: Waiting = { after_version: 0 }; ; ) {
    const asked = Date.now();
    const thing = understood(await ok(get(query)));
    if (done(thing) || until?.(thing)) return thing;
    if (query.wait && thing.version <= query.after_version && Date.now() - asked < unheld) await rest(unheld, signal);
    query = { wait: longPoll, after_version: thing.version };
  }
}

function understood<T>(body: T): T {
  if (typeof body !== "object" || body === null) throw notUnderstood();
  return body;
}

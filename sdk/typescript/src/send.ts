import { again, askedFor } from "./again.js";
import { NotBerth, notUnderstood, Problem, TooLarge, Unreachable } from "./errors.js";

/** Where to go and as whom. */
export interface Options {
  /** Of the control plane, like https://berth.example.com */
  url: string;
  /** Left out where `cookies` are the credential. */
  token?: string | undefined;
  /** The platform adds the cookie of a browser session, as pages of the control plane itself have it. */
  cookies?: boolean | undefined;
  /** The org to work in, an id or a name; the token's own when it is left out. */
  org?: string | undefined;
  /** How long a request is repeated, in milliseconds. Default: 20 s; 0: it is never repeated. */
  patienceMs?: number | undefined;
  /** How large an answer may be; streams of events have no limit. Default: 64 MiB. */
  maxAnswerBytes?: number | undefined;
  /** Called once per request that has been repeated for 2 s, with the reason. */
  onWaiting?: ((why: string) => void) | undefined;
  /** Sends the requests. Default: the platform's fetch. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

const defaultPatience = 20_000;
const defaultMaxAnswer = 64 << 20;
const maxProblem = 1 << 20;
const quietly = 2_000;
const firstPause = 100;
const maxPause = 2_000;

/** What came of sending a request once. */
interface Outcome {
  response?: Response;
  error?: unknown;
}

/**
 * Makes what sends requests with credentials and patience. It resolves to
 * answers of 2xx only; anything else is one of the errors of this package.
 */
export function sender(options: Options): (request: Request) => Promise<Response> {
  const origin = checked(options);
  const token = options.token ?? "";
  const send = options.fetch ?? ((request: Request) => fetch(request));
  const patience = options.patienceMs ?? defaultPatience;
  const maxAnswer = options.maxAnswerBytes ?? defaultMaxAnswer;
  const withoutToken = (text: string) => (token ? text.replaceAll(token, "(token)") : text);

  async function once(request: Request): Promise<Outcome> {
    try {
      // A clone, because sending uses the body up. Redirects are not followed:
      // they would take keys and bodies along.
      return { response: await readWhole(await send(new Request(request.clone(), { redirect: "manual" })), request, maxAnswer) };
    } catch (error) {
      return { error };
    }
  }

  return async function (request: Request): Promise<Response> {
    if (new URL(request.url).origin !== origin) {
      throw new Error(`this client is for ${origin} and sends nothing to ${new URL(request.url).origin}`);
    }
    dress(request, options);
    let began: number | undefined; // when the first try had failed: an answer may be waited for long
    let told = false;
    for (let pause = firstPause; ; pause = Math.min(2 * pause, maxPause)) {
      const outcome = await once(request);
      request.signal.throwIfAborted();
      began ??= Date.now();
      const wait = again({
        conditional: request.headers.has("If-Match"),
        status: outcome.response?.status ?? 0,
        passes: passes(outcome.error),
        asked: askedFor(outcome.response?.headers.get("Retry-After") ?? null, Date.now()),
        pause: pause / 2 + (Math.random() * pause) / 2, // so that not all clients come back together
        left: patience - (Date.now() - began),
      });
      if (wait === undefined) return judge(outcome, request, withoutToken);
      if (!told && Date.now() - began + wait > quietly) {
        told = true;
        options.onWaiting?.(await why(outcome, withoutToken));
      }
      await rest(wait, request.signal);
    }
  };
}

/** The origin of an address that can be a control plane's. Errors repeat neither address nor token. */
function checked({ url, token, cookies }: Options): string {
  if (!url) throw new Error("no control plane is given: set BERTH_URL, or the option url");
  if (!token && !cookies) throw new Error("no token is given: set BERTH_TOKEN, or the option token");
  if (token && /[^!-~]/.test(token)) throw new Error("the token contains invalid characters: it is one word that begins with brt_");
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new Error("the URL of the control plane must look like https://berth.example.com");
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new Error("the URL of the control plane must look like https://berth.example.com");
  }
  if (parsed.username || parsed.password || parsed.search || parsed.hash) {
    throw new Error("the URL of the control plane must have no user, password, query or fragment");
  }
  return parsed.origin;
}

/** Gives the request all that it needs to be answered. */
function dress(request: Request, { token, org }: Options): void {
  if (token) request.headers.set("Authorization", `Bearer ${token}`);
  if (org) request.headers.set("Berth-Org", org);
  if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
    request.headers.set("Idempotency-Key", crypto.randomUUID());
  }
}

/** Reads an answer that has an end, so that one which breaks off counts as none. */
async function readWhole(response: Response, request: Request, maxAnswer: number): Promise<Response> {
  if (kind(response) === "text/event-stream" || response.body === null) return response;
  const limit = response.ok ? maxAnswer : Math.min(maxAnswer, maxProblem);
  const parts: Uint8Array[] = [];
  let size = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > limit) {
      await reader.cancel();
      throw new TooLarge(new URL(request.url).pathname, limit);
    }
    parts.push(value);
  }
  const headers = new Headers(response.headers);
  headers.delete("Content-Encoding"); // it is unpacked
  headers.delete("Content-Length");
  const body = size === 0 ? null : new Blob(parts as BlobPart[]);
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}

/** Tells whether an error of sending can be gone at the next try. */
function passes(error: unknown): boolean {
  if (error instanceof TooLarge) return false;
  const code = causes(error).map((e) => (e as { code?: unknown }).code).find((c) => typeof c === "string") ?? "";
  // Certificates that do not fit today do not fit in a second either.
  return !/^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_INVALID_)/.test(code as string);
}

/** Turns the last try into what the caller gets. */
async function judge({ response, error }: Outcome, request: Request, withoutToken: (text: string) => string): Promise<Response> {
  const { origin, pathname } = new URL(request.url);
  if (response === undefined) {
    if (error instanceof TooLarge) throw error;
    throw new Unreachable(origin, withoutToken(reason(error)));
  }
  if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
    throw new NotBerth(origin, target(response.headers.get("Location"), request.url));
  }
  if (response.ok) {
    if (kind(response) === "text/html") throw new NotBerth(origin);
    return kind(response).endsWith("json") ? parsable(response) : response;
  }
  const problem = await read(response, withoutToken);
  if (problem) throw problem;
  if (response.status === 404) throw new NotBerth(origin);
  throw new Problem({
    status: response.status,
    title: response.statusText,
    detail: `${request.method} ${pathname} answered ${response.status} ${response.statusText}`,
  });
}

/** The same answer, if it is JSON: the platform's own error would quote it, with whatever it repeats of the request. */
async function parsable(response: Response): Promise<Response> {
  const text = await response.text();
  try {
    if (text) JSON.parse(text);
  } catch {
    throw notUnderstood();
  }
  return new Response(text, response);
}

/** The problem that an answer is; undefined when it is none. */
async function read(response: Response, withoutToken: (text: string) => string): Promise<Problem | undefined> {
  try {
    const body = JSON.parse(withoutToken(await response.text())) as unknown;
    if (typeof body === "object" && body !== null && typeof (body as Problem).status === "number") {
      return new Problem(body as ConstructorParameters<typeof Problem>[0]);
    }
  } catch {
    // not JSON: somebody in between answers
  }
  return undefined;
}

/** Says in a few words what a request that is repeated met. */
async function why({ response, error }: Outcome, withoutToken: (text: string) => string): Promise<string> {
  if (response === undefined) return withoutToken(reason(error));
  const problem = await read(response, withoutToken);
  return problem?.detail || `it answers ${response.status} ${response.statusText}`;
}

/** Where a redirect goes, as far as anybody may see it. */
function target(location: string | null, base: string): string | undefined {
  try {
    return location === null ? undefined : new URL(location, base).origin;
  } catch {
    return undefined;
  }
}

function kind(response: Response): string {
  return (response.headers.get("Content-Type") ?? "").split(";")[0]!.trim().toLowerCase();
}

/** An error and what caused it. */
function causes(error: unknown): Error[] {
  const all: Error[] = [];
  for (let e = error; e instanceof Error && all.length < 8; e = e.cause) all.push(e);
  return all;
}

/** The first cause of an error, in words. */
function reason(error: unknown): string {
  const first = causes(error).at(-1);
  return first?.message || (first as { code?: string } | undefined)?.code || String(error);
}

/** Pauses for milliseconds, or throws what ended the signal. */
export async function rest(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const ended = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", ended);
      resolve();
    }, ms);
    signal?.addEventListener("abort", ended, { once: true });
  });
}

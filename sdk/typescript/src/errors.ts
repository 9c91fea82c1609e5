import type { components } from "./api.gen.js";

/** One fault of an invalid request, with its place. */
export type ProblemItem = components["schemas"]["ProblemItem"];

/**
 * An answer of the control plane that says no (RFC 9457). Branch on `code`; the
 * rest is for people.
 */
export class Problem extends Error {
  override readonly name = "Problem";
  /** The HTTP status. */
  readonly status: number;
  /** Stable across releases, like "conflict"; "" when a proxy answered. */
  readonly code: string;
  /** What went wrong this time. */
  readonly detail: string;
  /** What to do about it, when that is known. */
  readonly remedy: string | undefined;
  /** Finds the request in the log of the service. */
  readonly requestId: string | undefined;
  /** All single faults of an invalid request. */
  readonly errors: readonly ProblemItem[];

  constructor(body: Partial<components["schemas"]["Problem"]> & { status: number }) {
    const detail = body.detail || (body.title ?? "").toLowerCase();
    let text = detail;
    if (body.remedy) text += ` (${body.remedy})`;
    if (body.request_id && body.status >= 500) text += ` (request ${body.request_id})`;
    super(text);
    this.status = body.status;
    this.code = body.code ?? "";
    this.detail = detail;
    this.remedy = body.remedy;
    this.requestId = body.request_id;
    this.errors = body.errors ?? [];
  }
}

/** Nobody answers. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";

  constructor(
    /** Scheme, host and port. */
    readonly url: string,
    why: string,
  ) {
    super(`cannot reach Berth at ${url}: ${why}`);
  }
}

/** Somebody else answers: a web page, or a redirect, which is not followed. */
export class NotBerth extends Error {
  override readonly name = "NotBerth";

  constructor(
    /** Scheme, host and port that were asked. */
    readonly url: string,
    /** Scheme, host and port that it redirects to, when it does and says so. */
    readonly to?: string,
  ) {
    super(
      to
        ? `${url} redirects to ${to}, which gets no credentials: set the address of the control plane itself`
        : `${url} answers, but it is not a Berth control plane`,
    );
  }
}

/** An answer is larger than `maxAnswerBytes`. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";

  constructor(path: string, limit: number) {
    super(`the answer of ${path} is larger than ${limit} bytes`);
  }
}

/** An answer is not what the contract of this version says. */
export function notUnderstood(): Error {
  return new Error("this version of the client does not understand the control plane's answer: compare the versions of both sides");
}

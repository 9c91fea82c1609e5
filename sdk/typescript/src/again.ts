/** A request that was sent once, and what came of it. Times are in milliseconds. */
export interface Attempt {
  /** The request has an If-Match, which its own success makes untrue: it is repeated only when it certainly had no effect. */
  conditional: boolean;
  /** Of the answer; 0 when there was none. */
  status: number;
  /** Why there was no answer can be gone at the next try. */
  passes: boolean;
  /** The pause that the service asks for. */
  asked: number | undefined;
  /** The pause to make otherwise. */
  pause: number;
  /** What is left of the patience. */
  left: number;
}

/**
 * Tells after what pause to send a request once more, in milliseconds;
 * undefined: not again. PUT, PATCH and DELETE of this API say what shall be, and
 * POST has a key: sent twice they do what they do once.
 */
export function again(attempt: Attempt): number | undefined {
  switch (attempt.status) {
    case 429:
      if (attempt.asked === undefined) return undefined;
      break;
    case 502:
    case 503:
    case 504:
      if (attempt.conditional) return undefined;
      break;
    case 0:
      if (attempt.conditional || !attempt.passes) return undefined;
      break;
    default:
      return undefined;
  }
  const pause = Math.max(attempt.pause, attempt.asked ?? 0);
  return pause <= attempt.left ? pause : undefined;
}

/** Reads a Retry-After, seconds or a time, in milliseconds. What is neither asks for nothing. */
export function askedFor(header: string | null, now: number): number | undefined {
  const text = (header ?? "").trim();
  if (/^[0-9]+$/.test(text)) return Number(text) * 1000;
  if (!/^[A-Z][a-z]{2}, /.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

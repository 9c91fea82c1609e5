// Checks records of a chain: each is hashed here and has to name the one before it. The
// signatures are checked offline, by berth-verify, with keys that one trusts.

export interface Stored {
  seq: number;
  hash: string; // hex
  body: string; // base64 of the exact bytes
}

export type Verdict = { ok: true } | { ok: false; why: string };

/** Records in the order of their numbers. */
export async function verify(records: readonly Stored[]): Promise<Verdict> {
  let before: Stored | undefined;
  for (const record of records) {
    const digest = await crypto.subtle.digest("SHA-256", bytes(record.body));
    const hash = Array.from(new Uint8Array(digest), (b) => b.toString(16).padStart(2, "0")).join("");
    if (hash !== record.hash) return { ok: false, why: `record ${record.seq} is not what its hash says` };
    const { seq, prev } = said(record.body);
    if (seq !== record.seq) return { ok: false, why: `record ${record.seq} says that it is number ${seq}` };
    if (before && record.seq !== before.seq + 1) return { ok: false, why: `record ${before.seq + 1} is missing` };
    if (before && prev.replace(/^sha256:/, "") !== before.hash)
      return { ok: false, why: `record ${record.seq} does not follow on record ${before.seq}` };
    before = record;
  }
  return { ok: true };
}

/** What a record says. */
export function said(body: string): { seq: number; prev: string; actor: string; what: string } {
  try {
    const raw = JSON.parse(new TextDecoder().decode(bytes(body))) as Record<string, unknown>;
    const text = (v: unknown) => (typeof v === "string" ? v : "");
    return { seq: Number(raw["seq"]), prev: text(raw["prev"]), actor: text(raw["actor"]), what: text(raw["what"]) };
  } catch {
    return { seq: NaN, prev: "", actor: "", what: "a record that cannot be read" };
  }
}

const bytes = (base64: string) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

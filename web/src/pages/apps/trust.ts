// What the vendor signed of a release, as one word. Pure.
import type { Answer } from "~/api/client";
import type { Tone } from "~/ui/State";

type Release = Pick<Answer<"/releases/{release}">, "statements" | "revocations">;

/** Runners verify what was signed; a page only says what there is. */
export function trust({ statements = [], revocations = [] }: Release, now: number): { state: string; tone: Tone; word: string } {
  if (revocations.length > 0) return { state: "revoked", tone: "bad", word: "revoked" };
  const matching = statements.filter((s) => s.matches);
  if (matching.some((s) => Date.parse(s.expires_at) > now)) return { state: "signed", tone: "good", word: "signed" };
  if (matching.length > 0) return { state: "expired", tone: "warn", word: "signature expired" };
  if (statements.length > 0) return { state: "other", tone: "warn", word: "signed with other contents" };
  return { state: "unsigned", tone: "unknown", word: "not signed" };
}

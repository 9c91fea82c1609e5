import { expect, test } from "vitest";
import { trust } from "./trust";

const at = (hours: number) => new Date(hours * 3_600_000).toISOString();
const signed = { key_id: "ed25519:6f", added_at: at(0), added_by: "ci", digest: "sha256:1", expires_at: at(2), matches: true };
const revoked = { key_id: "ed25519:6f", added_at: at(0), added_by: "ci", digest: "sha256:1", issued_at: at(0), reason: "it loses data" };

test.each([
  ["nothing", {}, "not signed"],
  ["a statement of what it is", { statements: [signed] }, "signed"],
  ["one that can no longer be accepted", { statements: [{ ...signed, expires_at: at(1) }] }, "signature expired"],
  ["an old one and a new one", { statements: [{ ...signed, expires_at: at(1) }, signed] }, "signed"],
  ["one of what it was", { statements: [{ ...signed, matches: false }] }, "signed with other contents"],
  ["a revocation, whatever else was signed", { statements: [signed], revocations: [revoked] }, "revoked"],
])("%s", (_, release, word) => {
  expect(trust(release, 1.5 * 3_600_000).word).toBe(word);
});

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { type Stored, verify } from "./verify";

function chain(...what: string[]): Stored[] {
  let prev = "";
  return what.map((text, i) => {
    const raw = JSON.stringify({ chain: "org1", seq: i + 1, prev, what: text });
    const hash = createHash("sha256").update(raw).digest("hex");
    prev = "sha256:" + hash;
    return { seq: i + 1, hash, body: Buffer.from(raw).toString("base64") };
  });
}

const [a, b, c] = chain("create app", "deploy ü", "revoke token") as [Stored, Stored, Stored];
const other = chain("create app", "something else")[1]!;

test.each<[string, Stored[], string | undefined]>([
  ["nothing", [], undefined],
  ["a whole chain", [a, b, c], undefined],
  ["a part of one", [b, c], undefined],
  ["a gap", [a, c], "record 2 is missing"],
  ["a changed record", [a, { ...b, body: other.body }, c], "record 2 is not what its hash says"],
  ["a record with its own hash in another's place", [a, other, c], "record 3 does not follow on record 2"],
  ["a wrong number", [{ ...b, seq: 1 }], "record 1 says that it is number 2"],
  ["no JSON", [{ seq: 1, hash: createHash("sha256").update("x").digest("hex"), body: "eA==" }], "record 1 says that it is number NaN"],
])("%s", async (_, records, why) => {
  expect(await verify(records)).toEqual(why ? { ok: false, why } : { ok: true });
});

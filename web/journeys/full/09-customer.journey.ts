// What the customer has to say: consent, rules and the switch.
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { api, close } from "../browser";
import { approve, approveEach, customer, deploy, head, idOf, ofInstall, ofRunner, ready, turnPage, watch, well, workflow } from "./life";

const run = promisify(execFile);
const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
  await close();
});

/** A key of somebody of the customer's, held by an agent. */
async function key(): Promise<{ file: string; env: Record<string, string> }> {
  const folder = await mkdtemp(join(tmpdir(), "key-"));
  const env = { SSH_AUTH_SOCK: join(folder, "s") };
  const agent = spawn("ssh-agent", ["-D", "-a", env.SSH_AUTH_SOCK], { stdio: ["ignore", "pipe", "ignore"] });
  ends.push(
    () => agent.kill(),
    () => rm(folder, { recursive: true }),
  );
  await new Promise((listens) => agent.stdout.once("data", listens));
  await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, "id")]);
  await run("ssh-add", ["-q", join(folder, "id")], { env: { ...process.env, ...env } });
  return { file: join(folder, "id.pub"), env };
}

test("a change that was approved waits for the customer's signature, says so, and goes on when it is there", async () => {
  await ready("hooli");
  const ada = await key();
  const file = await ofRunner("hooli", "trust.json");
  const trust = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  trust["consent"] = { mode: "each", holders: [{ name: "ada", keys: [await readFile(ada.file, "utf8")] }] };
  await writeFile(file, JSON.stringify(trust));
  expect(await customer("hooli", ["consent", "show"])).toContain("mode each");

  await turnPage("consented");
  const seen = await watch("/installs/hooli");
  const { page } = seen;
  await deploy(page, "journal");
  await page.getByRole("link", { name: "Review", exact: true }).first().click();
  await approve(page);
  await page.getByRole("link", { name: "Follow its workflow" }).click();
  await page.getByRole("region", { name: "Why it waits" }).getByText("the customer can end it").waitFor();
  const open = JSON.parse(await customer("hooli", ["changes", "--waiting", "-o", "json"])) as {
    change_id: string;
    effect_digest: string;
  }[];
  expect(open).toHaveLength(1);
  const { change_id, effect_digest } = open[0]!;
  await customer("hooli", ["approve", change_id, "--ssh-key", ada.file, "--reason", "ticket 4711", "--yes", effect_digest], ada.env);
  await head(page).getByText("succeeded", { exact: true }).waitFor({ timeout: 60_000 });
  expect(await readFile(await ofInstall("hooli", "journal.txt"), "utf8")).toBe("consented\n");
  await well(seen);
});

const noNewPage = `package berth

deny contains msg if {
	some r in input.plan.resource_changes
	r.change.after.input.page == "forbidden"
	msg := "this page may not be printed"
}
`;

test("a change that the customer's rules deny says which rule and why, and goes through when they loosen it", async () => {
  await ready("acme");
  await rm(await ofRunner("acme", "guardrails", "answers.json"), { force: true });
  await writeFile(await ofRunner("acme", "guardrails", "no-forbidden-page.rego"), noNewPage);
  await turnPage("forbidden");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await deploy(page, "journal");
  await approveEach(page, "failed");
  await page.keyboard.press("f");
  await page
    .getByRole("region", { name: /^Step .*journal/ })
    .getByText(/no-forbidden-page/)
    .first()
    .waitFor();
  await page
    .getByText(/this page may not be printed/)
    .first()
    .waitFor();
  await customer("acme", ["guardrails", "set", "no-forbidden-page", "--answer", "warn", "--for", "1h", "--reason", "this once"]);
  await page.getByRole("button", { name: "Retry failed steps" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retry failed steps" }).click();
  await page.getByRole("button", { name: "Close the step" }).click();
  await approveEach(page);
  await well(seen);
});

test("the customer's switch is seen with its reason, and nothing happens until they turn it back", async () => {
  await ready("acme");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await customer("acme", ["read-only", "--reason", "year's end"]);
  await head(page).getByText("read only", { exact: true }).waitFor({ timeout: 60_000 });
  await turnPage("switched");
  await deploy(page, "journal");
  await page
    .getByText(/read.only|switch/i)
    .first()
    .waitFor();
  const id = idOf(page);
  await page
    .getByRole("link", { name: "Review", exact: true })
    .or(page.getByRole("region", { name: "Why it waits" }))
    .first()
    .waitFor();
  expect((await workflow(id)).state).not.toBe("succeeded");
  await customer("acme", ["resume"]);
  await approveEach(page);
  expect((await api<{ state: string }>("GET", `/workflows/${id}`)).state).toBe("succeeded");
  await well(seen);
});

// What fails, and what people do then: logs, retry, skip, cancel, pause.
import { rm, writeFile } from "node:fs/promises";
import { readFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import { close, settled, visit } from "../browser";
import { approve, approveEach, at, deploy, head, idOf, ofInstall, ready, turnPage, watch, well, workflow } from "./life";

afterAll(close);

test("a failed step leads to its log at the failing line; the cause is removed, a button retries, and it is healthy", async () => {
  await ready("acme");
  await turnPage("broken");
  const broken = await ofInstall("acme", "broken");
  await writeFile(broken, "");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await deploy(page, "journal");
  await approveEach(page, "failed");
  const inbox = await watch("/");
  await inbox.page.getByRole("region", { name: "Broken" }).getByRole("link", { name: /acme/ }).waitFor({ timeout: 90_000 });

  await page.keyboard.press("f");
  await page.getByRole("region", { name: /^Step .*journal/ }).waitFor();
  const lines = page.getByRole("region", { name: "Lines of the log" });
  await lines.getByText(/^Error: terraform_data\.page/).waitFor(); // on the screen, of hundreds of lines
  await page.getByRole("button", { name: "1 error" }).waitFor();
  expect(await lines.getByText(/page broken, line 1$/).count()).toBe(0);

  await rm(broken);
  await page.getByRole("button", { name: "Retry failed steps" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retry failed steps" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Close the step" }).click();
  await approveEach(page);
  await inbox.page.getByRole("region", { name: "Broken" }).waitFor({ state: "detached", timeout: 60_000 });
  await head(page).getByRole("link", { name: "acme" }).click();
  await head(page).getByText("healthy", { exact: true }).waitFor({ timeout: 150_000 });
  expect(await readFile(await ofInstall("acme", "journal.txt"), "utf8")).toBe("broken\n");
  await well(seen);
  await well(inbox);
});

test("a step that failed is skipped, and the workflow goes on without it", async () => {
  await ready("acme");
  await turnPage("skipped");
  const broken = await ofInstall("acme", "broken");
  await writeFile(broken, "");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await deploy(page, "journal");
  await approveEach(page, "failed");
  await rm(broken);
  await page.keyboard.press("f");
  await page.getByRole("button", { name: "Skip step" }).click();
  await page.getByRole("dialog").getByText("Something of the release is missing then.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Skip step" }).click();
  await head(page).getByText("succeeded", { exact: true }).waitFor();
  expect((await workflow(idOf(page))).steps.find((s) => s.name.includes("journal"))?.state).toBe("skipped");
  await well(seen);
});

test("a workflow that waits for a decision is cancelled, and nothing of it happens", async () => {
  await ready("acme");
  await turnPage("cancelled");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await deploy(page, "journal");
  await page.getByRole("link", { name: "Review", exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Cancel workflow" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel workflow" }).click();
  await head(page).getByText("cancelled", { exact: true }).waitFor();
  expect(await readFile(await ofInstall("acme", "journal.txt"), "utf8")).not.toBe("cancelled\n");
  await well(seen);
});

test("a paused install carries nothing out, says who paused it and why, and goes on when it is resumed", async () => {
  await ready("acme");
  await turnPage("paused");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await page.getByRole("button", { name: "Pause…" }).click();
  await page.getByLabel("Why? Those who wait will read it.").fill("the customer counts its stock");
  await page.getByRole("dialog").getByRole("button", { name: "Pause install" }).click();
  await page.getByText(/Paused by/).waitFor();

  const work = await watch("/installs/acme");
  await deploy(work.page, "journal");
  await work.page.getByRole("link", { name: "Review", exact: true }).first().click();
  await approve(work.page);
  await work.page.getByRole("link", { name: "Follow its workflow" }).click();
  await work.page
    .getByText(/the customer counts its stock/)
    .first()
    .waitFor();
  expect((await workflow(idOf(work.page))).state).toBe("waiting");
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await approveEach(work.page);
  await well(work);
  await well(seen);
});

test("a denied change ends its workflow, with who denied it and why", async () => {
  await ready("acme");
  await turnPage("denied");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await deploy(page, "journal");
  await page.getByRole("link", { name: "Review", exact: true }).first().click();
  await page.getByRole("button", { name: "Approve change", disabled: false }).waitFor();
  await page.getByLabel("Note to keep with the decision").fill("not before the audit");
  await page.getByRole("button", { name: /^Deny/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Deny/ }).click();
  await page.getByText("not before the audit").first().waitFor();
  await page.getByRole("link", { name: "Follow its workflow" }).click();
  await page.getByText(/Nothing went wrong: .* denied a change\./).waitFor();
  await well(seen);
});

test("what a page offers leads on: from the inbox to the change and to the next decision", async () => {
  await ready("acme");
  await turnPage("inbox");
  const work = await visit("/installs/acme");
  await deploy(work.page, "journal");
  const seen = await watch("/");
  await seen.page.getByRole("link", { name: /acme · journal/ }).click();
  await approve(seen.page, "seen from the inbox");
  await seen.page.goto(at("/"));
  await settled(seen.page);
  await seen.page.getByText("Nothing waits for you and nothing is wrong.").or(seen.page.getByRole("region")).first().waitFor();
  expect(await seen.page.getByRole("link", { name: /acme · journal/ }).count()).toBe(0);
  await approveEach(work.page);
  expect(seen.wrong).toEqual([]);
  expect(work.wrong).toEqual([]);
});

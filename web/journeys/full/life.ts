// The lives of installs: what journeys of this folder do and look at again and again.
//
//	BERTH_APP   the app folder: examples/hello, and what of it can go wrong
//	BERTH_DATA  the data of this Berth: its runners are on this machine too
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { api, berth, settled, url, visit, type Watched } from "../browser";

export const app = process.env["BERTH_APP"] ?? "";
const data = process.env["BERTH_DATA"] ?? "";
const run = promisify(execFile);

interface Install {
  id: string;
  state: string;
  health: string;
  workflow_id?: string;
  release?: { number: number };
}

export interface Workflow {
  id: string;
  kind: string;
  state: string;
  number: number;
  steps: { id: string; name: string; state: string; change?: { id: string; state: string } }[];
}

export const workflow = (id: string) => api<Workflow>("GET", `/workflows/${id}`);

/** The id of the workflow that a page shows. */
export const idOf = (page: Page) => /wfl[_a-z0-9]+/.exec(page.url())?.[0] ?? "";

/** Makes a release of the app folder, unless there is one of it. */
export async function sync(message: string): Promise<void> {
  await berth("sync", app, "--app", "hello", "--wait", "--timeout", "4m", "-m", message);
}

/** Writes another page into the journal of the app folder, and releases that. */
export async function turnPage(page: string): Promise<void> {
  const file = join(app, "components", "journal.toml");
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace(/^page {6}= ".*"$/m, `page      = "${page}"`));
  await sync(`Page ${page}`);
}

/** An install that is live; made and provisioned at the command line when there is none. */
export async function ready(name: string, ...labels: string[]): Promise<Install> {
  const known = (await api<{ items: { name: string }[] }>("GET", "/installs?limit=200")).items.some((i) => i.name === name);
  if (!known) {
    if ((await api<{ items: unknown[] }>("GET", "/apps")).items.length === 0) await sync("As it began");
    const words = labels.flatMap((l) => ["--label", l]);
    await berth("installs", "create", name, "--app", "hello", ...words, "--auto-approve", "--timeout", "4m");
  }
  return api("GET", `/installs/${name}`);
}

/** The data folder of an install's runner, which is its customer's. */
async function runnerDir(install: string): Promise<string> {
  const { runner } = await api<{ runner: { id: string } }>("GET", `/installs/${install}/stack`);
  return join(data, "runners", runner.id);
}

/** A file in the runner's folder. */
export const ofRunner = async (install: string, ...path: string[]) => join(await runnerDir(install), ...path);

/** A file that the app wrote in an install. */
export const ofInstall = async (install: string, name: string) => ofRunner(install, "install", "hello", name);

/** What the customer types at the machine of the runner. */
export async function customer(install: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const program = join(dirname(process.env["BERTH_BIN"]!), "berth-runner");
  const { stdout } = await run(program, ["--data", await runnerDir(install), ...args], { env: { ...process.env, ...env } });
  return stdout;
}

/** A page that follows events, so that what changes is seen without a reload; fails when it is loaded again. */
export async function watch(path: string): Promise<Watched> {
  const seen = await visit(path);
  await settled(seen.page);
  await seen.page.getByText("live", { exact: true }).first().waitFor();
  await seen.page.evaluate(() => ((window as { sameDocument?: boolean }).sameDocument = true));
  return seen;
}

/** Nothing went wrong on the page, and it was not loaded again since watch. */
export async function well({ page, wrong, context }: Watched): Promise<void> {
  expect(await page.evaluate(() => (window as { sameDocument?: boolean }).sameDocument)).toBe(true);
  expect(wrong).toEqual([]);
  await context.close();
}

/** The head of a page: what it is about, and how that is. */
export const head = (page: Page): Locator => page.locator("main header").first();

/** Looks at the change that is on the screen and approves it; one that somebody answered is left. */
export async function approve(page: Page, note?: string): Promise<boolean> {
  const button = page.getByRole("button", { name: "Approve change", disabled: false });
  const over = page.getByRole("link", { name: "Follow its workflow" });
  await button.or(over).first().waitFor();
  if (await over.isVisible()) return false;
  if (note) await page.getByLabel("Note to keep with the decision").fill(note);
  await button.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Approve change" }).click();
  await over.waitFor();
  return true;
}

/** From the page of a workflow: reviews and approves each change that it proposes, until it ends. Answers how many. */
export async function approveEach(page: Page, end = "succeeded"): Promise<number> {
  const over = head(page).getByText(end, { exact: true });
  const review = page.getByRole("region", { name: "Steps" }).getByRole("link", { name: "Review", exact: true }).first();
  for (let approved = 0; ;) {
    await over.or(review).first().waitFor({ timeout: 120_000 });
    if (await over.isVisible()) return approved;
    // It may be from before the last decision: then it goes while one aims at it.
    if (
      !(await review.click({ timeout: 3_000 }).then(
        () => true,
        () => false,
      ))
    )
      continue;
    await page.waitForURL("**/changes/*");
    if (await approve(page)) approved++;
    await page.getByRole("link", { name: "Follow its workflow" }).click();
    await page.waitForURL("**/workflows/*");
  }
}

/** Starts a deploy from the page of an install; answers when its workflow is on the screen. */
export async function deploy(page: Page, ...components: string[]): Promise<void> {
  await page.getByRole("button", { name: "Deploy…" }).click();
  const dialog = page.getByRole("dialog");
  for (const name of components) await dialog.getByRole("checkbox", { name, exact: true }).check();
  await dialog.getByRole("button", { name: /^Deploy r/ }).click();
  await page.waitForURL("**/workflows/*");
}

export const at = (path: string) => `${url}/ui${path}`;

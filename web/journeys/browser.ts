// A real browser on a real Berth. The environment says where it is:
//
//	BERTH_URL      the control plane
//	BERTH_TOKEN    an admin's token
//	BERTH_BIN      the command line
//	BERTH_STAGE    an address that stops and starts parts of the system
//	BERTH_CHROMIUM the browser; else /usr/bin/chromium
//	BERTH_PICTURES a folder for pictures of the pages of journeys that fail
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Browser, type BrowserContext, chromium, type Page, type Route } from "playwright-core";
import { expect, onTestFailed } from "vitest";

function given(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: journeys are run by the test of services/e2e (docs/testing.md)`);
  return value;
}

export const url = given("BERTH_URL");
export const token = given("BERTH_TOKEN");

let browser: Browser | undefined;

/** The browser of all journeys of a file. */
export async function open(): Promise<Browser> {
  return (browser ??= await chromium.launch({
    executablePath: process.env["BERTH_CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  }));
}

export async function close(): Promise<void> {
  await browser?.close();
  browser = undefined;
}

/** What a page did that none may do: errors, and what its security policy refused. */
export interface Watched {
  page: Page;
  context: BrowserContext;
  wrong: string[];
}

interface Look {
  dark?: boolean;
  width?: number;
  height?: number;
  /** Nobody is logged in. */
  stranger?: boolean;
  /** A session of its own, which may end. The others of a file share one. */
  own?: boolean;
}

let session: Awaited<ReturnType<BrowserContext["storageState"]>> | undefined;

/** A page of a browser of its own, logged in as the admin. */
export async function visit(
  path: string,
  { dark = false, width = 1440, height = 900, stranger = false, own = false }: Look = {},
): Promise<Watched> {
  const context = await (
    await open()
  ).newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    timezoneId: "UTC",
    locale: "en-GB",
    ...(session && !stranger && !own ? { storageState: session } : {}),
  });
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (/content security policy|trustedhtml|trusted type/i.test(message.text())) wrong.push(`policy: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:")) wrong.push(`asked ${request.url()}`);
  });
  onTestFailed(() => shown(page));
  if (!stranger && (own || !session)) await logIn(page);
  if (!stranger && !own) session ??= await context.storageState();
  await page.goto(url + "/ui" + path);
  return { page, context, wrong };
}

let pictures = 0;

/** Tells what a page showed when its journey failed. */
async function shown(page: Page): Promise<void> {
  if (page.isClosed()) return;
  const text = await page.locator("body").innerText();
  console.error(`${page.url()} showed:\n${text.replace(/\n+/g, "\n").slice(0, 2_000)}`);
  const folder = process.env["BERTH_PICTURES"];
  if (!folder) return;
  const name = `${expect
    .getState()
    .currentTestName?.replace(/[^a-z0-9]+/gi, "-")
    .slice(0, 60)}-${++pictures}.png`;
  await page.screenshot({ path: join(folder, name) });
}

/** Logs in on the login page, as the admin unless another token is given. */
export async function logIn(page: Page, secret = token): Promise<void> {
  await page.goto(url + "/ui/login");
  await page.getByLabel("or a token").fill(secret);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByRole("navigation", { name: "Places" }).waitFor();
}

/** Waits until a page is there, nothing of it is being read, and its fonts have come. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main").first().waitFor(); // before it, there is nothing that could be read or listen to keys
  await expect.poll(() => page.getByRole("status", { name: "Loading" }).count(), { timeout: 20_000 }).toBe(0);
  await page.evaluate(() => document.fonts.ready);
}

/** Runs the command line, and answers what it printed. */
export async function berth(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(given("BERTH_BIN"), args, { env: { ...process.env, NO_COLOR: "1" } });
  return stdout;
}

/** Reads or changes something by the API, as the admin. */
export async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** What pages read of the API, besides who one is and what happens. */
export const asked = (at: URL) => at.origin === url && !/^\/(ui|events|me|session)\b/.test(at.pathname);

/** Which slice of what takes long is taken. */
export const seed = Number(process.env["BERTH_SEED"] ?? 16);

/** Gives another answer than the API's, if that is JSON, unless the page went on meanwhile. */
export async function rewrite(route: Route, into: (body: unknown) => unknown): Promise<void> {
  let answer;
  let body: unknown;
  try {
    answer = await route.fetch();
    if (answer.headers()["content-type"]?.includes("json")) body = await answer.json();
  } catch {
    return; // it went on: nobody waits for this
  }
  const json = body === undefined ? {} : { json: into(body) };
  await route.fulfill({ response: answer, ...json }).catch(() => undefined);
}

/** Tells the stage what happens to the system: "stop/ctl-api", "start/ctl-api". */
export async function stage(what: string): Promise<void> {
  const answer = await fetch(`${given("BERTH_STAGE")}/${what}`, { method: "POST" });
  if (!answer.ok) throw new Error(`stage: ${what}: ${await answer.text()}`);
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails when something on a page is not for everybody (WCAG 2.2, level AA). */
export async function axe(page: Page): Promise<void> {
  // By the protocol of the debugger: the page's own policy takes no script from elsewhere.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axeSource });
  const { result } = await session.send("Runtime.evaluate", {
    expression: `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? "")).join("; ")))`,
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  const violations = result.value as string[];
  if (violations.length > 0) throw new Error("not for everybody:\n" + violations.join("\n"));
}

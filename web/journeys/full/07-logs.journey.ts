// Logs of real jobs.
import { readFile, rm, writeFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import { close, settled, token, visit } from "../browser";
import { approve, approveEach, deploy, ofInstall, ready, turnPage, watch, well } from "./life";

afterAll(close);

let log = "";

test("the log of a job that runs is followed line by line", async () => {
  await ready("acme");
  await turnPage("followed");
  const hold = await ofInstall("acme", "hold");
  await writeFile(hold, "");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await deploy(page, "journal");
  await page.getByRole("link", { name: "Review", exact: true }).first().click();
  await approve(page);
  await page.getByRole("link", { name: "Follow its workflow" }).click();
  await page
    .getByRole("link", { name: /journal/ })
    .first()
    .click();
  await page
    .getByRole("row", { name: /^apply/ })
    .getByRole("button", { name: /^log/ })
    .click();
  const lines = page.getByRole("region", { name: "Lines of the log" });
  await lines.getByText(/is held, look 3$/).waitFor();
  await page.getByText("lines come as they are written").waitFor();
  await lines.getByText(/is held, look 15$/).waitFor(); // it came, and is in sight
  await rm(hold);
  await page.getByText(/^sha256/).waitFor();
  log = (await page.getByRole("link", { name: "On a page of its own" }).getAttribute("href")) ?? "";
  await approveEach(page);
  await well(seen);
});

test("a word is found in a log by the server, and the keyboard goes from match to match", async () => {
  const { page, wrong, context } = await visit(log.replace("/ui", ""));
  await settled(page);
  await page.keyboard.press("/");
  await page.getByRole("searchbox", { name: "Search in this log" }).fill("line 17");
  await page
    .getByText(/of 11\b/)
    .or(page.getByText(/11 /))
    .first()
    .waitFor(); // line 17 and lines 170 to 179
  const lines = page.getByRole("region", { name: "Lines of the log" });
  await lines.getByText(/page followed, line 17$/).waitFor();
  await page.keyboard.press("Enter");
  await lines.getByText(/page followed, line 170$/).waitFor();
  expect(wrong).toEqual([]);
  await context.close();
});

test("a log is saved as it was written", async () => {
  const { page, wrong, context } = await visit(log.replace("/ui", ""));
  await settled(page);
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  const text = await readFile(await saved.path(), "utf8");
  expect(text.split("\n").filter((l) => /page followed, line \d+$/.test(l))).toHaveLength(300);
  expect(saved.suggestedFilename()).toMatch(/\.log$/);
  expect(wrong).toEqual([]);
  await context.close();
});

test("a link to lines opens them in another browser, and leads through its login", async () => {
  const first = await visit(log.replace("/ui", "") + "?lines=L100");
  await settled(first.page);
  await first.page.getByRole("button", { name: "Line 100: link to it" }).waitFor();
  await first.page.getByRole("button", { name: "Line 104: link to it" }).click({ modifiers: ["Shift"] });
  await first.page.waitForURL(/L100-L104/);
  const wanted = new URL(first.page.url());
  const other = await visit(wanted.pathname.replace("/ui", "") + wanted.search, { stranger: true });
  await other.page.getByLabel("or a token").fill(token);
  await other.page.getByRole("button", { name: "Log in", exact: true }).click();
  await other.page.waitForURL(wanted.href);
  for (const line of [100, 102, 104]) await other.page.getByRole("button", { name: `Line ${line}: link to it`, pressed: true }).waitFor();
  expect(first.wrong).toEqual([]);
  expect(other.wrong).toEqual([]);
});

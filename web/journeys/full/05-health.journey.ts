// What goes wrong by itself, and what the runner does about it.
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import { close } from "../browser";
import { approveEach, head, ofInstall, ready, watch, well } from "./life";

afterAll(close);

test("an unhealthy check appears while one looks, with what it says; so does its end", async () => {
  await ready("acme");
  const seen = await watch("/installs/acme");
  const fleet = await watch("/installs");
  const { page } = seen;
  await head(page).getByText("healthy", { exact: true }).waitFor({ timeout: 150_000 });
  const file = await ofInstall("acme", "greeting.txt");
  const right = await readFile(file, "utf8");
  await writeFile(file, "Nobody wrote this\n");
  await head(page).getByText("unhealthy", { exact: true }).waitFor({ timeout: 150_000 });
  await fleet.page.getByRole("rowheader", { name: /acme ?, unhealthy/ }).waitFor();
  await page.getByRole("link", { name: "Checks", exact: true }).click();
  const check = page.getByRole("listitem").filter({ hasText: "files_intact" });
  await check.getByText("unhealthy", { exact: true }).waitFor();
  await writeFile(file, right);
  await check.getByText("healthy", { exact: true }).waitFor({ timeout: 150_000 });
  await head(page).getByText("healthy", { exact: true }).waitFor();
  await fleet.page.getByRole("rowheader", { name: /acme ?, healthy/ }).waitFor();
  await well(seen);
  await well(fleet);
});

test("the runner heals by itself what the app says it may, and the page shows how", async () => {
  await ready("acme");
  const seen = await watch("/installs/acme?tab=checks");
  const { page } = seen;
  await writeFile(await ofInstall("acme", "evening"), "");
  const healed = page.getByRole("group", { name: "Remediations" }).getByRole("row", { name: /lamp/ });
  await healed.getByText("helped", { exact: true }).waitFor({ timeout: 200_000 });
  expect(await healed.textContent()).toContain("light");
  await head(page).getByText("healthy", { exact: true }).waitFor({ timeout: 90_000 });
  await well(seen);
});

test("a health check runs at once by a button", async () => {
  await ready("acme");
  const seen = await watch("/installs/acme?tab=actions");
  const { page } = seen;
  await page.getByRole("listitem").filter({ hasText: "files_intact" }).getByRole("button", { name: "Run…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run files_intact" }).click();
  await page.waitForURL("**/workflows/*");
  await head(page).getByText("succeeded", { exact: true }).waitFor();
  await well(seen);
});

test("an action asks for its inputs, is approved, and says what it wrote in its log", async () => {
  await ready("acme");
  const seen = await watch("/installs/acme?tab=actions");
  const { page } = seen;
  await page.getByRole("listitem").filter({ hasText: "stamp" }).getByRole("button", { name: "Run…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Run stamp" }).click();
  await dialog.getByRole("alert").getByText("word is required").waitFor();
  await dialog.getByLabel("word").fill("Fair winds");
  await dialog.getByText("berth actions run acme stamp --input 'word=Fair winds'").waitFor();
  await dialog.getByRole("button", { name: "Run stamp" }).click();
  await page.waitForURL("**/workflows/*");
  await approveEach(page);
  expect(await readFile(await ofInstall("acme", "stamp"), "utf8")).toBe("Fair winds\n");
  await page.keyboard.press("k"); // the last step
  await page.keyboard.press("l");
  await page.getByText("stamped: Fair winds").waitFor();
  await well(seen);
});

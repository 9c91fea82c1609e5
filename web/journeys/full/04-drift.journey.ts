// Somebody changes by hand what Berth deployed.
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import { close } from "../browser";
import { approveEach, head, ofInstall, ready, watch, well } from "./life";

afterAll(close);

test("an edit by hand is found by a button, shown with what was deployed, and taken back by an approved change", async () => {
  await ready("acme");
  const flags = await ofInstall("acme", "flags");
  await writeFile(flags, JSON.stringify({ text: "by hand" }));
  const seen = await watch("/installs/acme?tab=drift");
  const fleet = await watch("/installs");
  const { page } = seen;
  await page.getByRole("button", { name: "Look now" }).click();
  const found = page.getByRole("article").filter({ hasText: "flags" });
  await found.getByText("drifted", { exact: true }).waitFor({ timeout: 90_000 });
  const row = page.getByRole("group", { name: /world_file\.flags/ }).getByRole("row", { name: /by hand/ });
  expect(await row.textContent()).toMatch(/as deployed.*nobody knows/);
  await page.getByText("The runner was asked to look.").waitFor({ state: "detached" });
  await head(page).getByText("1 drifted").waitFor();
  await fleet.page.getByRole("rowheader", { name: /acme.*1 drifted/ }).waitFor();

  await found.getByRole("button", { name: "Plan to take it back" }).click();
  await page.waitForURL("**/workflows/*");
  expect(await approveEach(page)).toBe(1);
  expect(await readFile(flags, "utf8")).toContain("as deployed");
  await head(page).getByRole("link", { name: "acme" }).click();
  await page.getByRole("link", { name: "Drift", exact: true }).click();
  await found.getByText("nobody looked yet").waitFor(); // since it was deployed
  await page.getByRole("button", { name: "Look now" }).click();
  await found.getByText("as deployed", { exact: true }).waitFor({ timeout: 90_000 });
  await head(page).getByText("1 drifted").waitFor({ state: "detached" });
  await well(seen);
  await well(fleet);
});

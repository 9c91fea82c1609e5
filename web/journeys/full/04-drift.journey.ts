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
  expect(await row.textContent()).toContain("as deployed");
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
  await found.getByText("as deployed", { exact: true }).waitFor({ timeout: 60_000 });
  await head(page).getByText("1 drifted").waitFor({ state: "detached" });
  await well(seen);
  await well(fleet);
});

test("drift is in the inbox until it is gone, and in what happened to the install", async () => {
  await ready("acme");
  const inbox = await watch("/");
  const seen = await watch("/installs/acme?tab=drift");
  const { page } = seen;
  const flags = await ofInstall("acme", "flags");
  const deployed = await readFile(flags, "utf8");
  await writeFile(flags, JSON.stringify({ text: "again by hand" }));
  await page.getByRole("button", { name: "Look now" }).click();
  await inbox.page.getByRole("region", { name: "Drifted" }).getByRole("link", { name: /acme/ }).waitFor({ timeout: 150_000 });
  await writeFile(flags, deployed);
  await page.getByRole("button", { name: "Look now" }).click();
  await page.getByRole("article").filter({ hasText: "flags" }).getByText("as deployed", { exact: true }).waitFor({ timeout: 90_000 });
  await page.getByRole("link", { name: "Timeline", exact: true }).click();
  await page.getByRole("combobox", { name: "Only this kind" }).selectOption("drift");
  await page.getByText(/drift/i).first().waitFor();
  await well(seen);
  await well(inbox);
});

import { afterAll, expect, test } from "vitest";
import { axe, close, settled, visit } from "./browser";

afterAll(close);

test("the search finds an install by a few letters and opens it", async () => {
  const { page, wrong } = await visit("/");
  await settled(page);
  await page.keyboard.press("Control+k");
  const search = page.getByRole("combobox");
  await search.fill("installs/acm");
  await page.getByRole("option", { name: /^acme/ }).first().waitFor();
  await axe(page);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/ui/installs/acme");
  expect(wrong).toEqual([]);
});

test("keys lead to places, and are told", async () => {
  const { page } = await visit("/");
  await settled(page);
  for (const [keys, place] of [
    ["gs", "installs"],
    ["ga", "apps"],
    ["gr", "runners"],
    ["gi", ""],
  ] as const) {
    for (const key of keys) await page.keyboard.press(key);
    await page.waitForURL(`**/ui/${place}`);
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("the search finds a deed, and leads to where it is done", async () => {
  const { page, wrong } = await visit("/apps");
  await settled(page);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("pause acme");
  await page.getByRole("option", { name: "Pause acme" }).waitFor();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Pause acme" });
  await dialog.getByText("berth installs pause acme").waitFor();
  await axe(page);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(new URL(page.url()).search).toBe("");
  expect(wrong).toEqual([]);
});

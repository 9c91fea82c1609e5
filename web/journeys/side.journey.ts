// What is kept at the side: it stays while one goes elsewhere, as wide as one left it, until it is closed.
import { afterAll, expect, test } from "vitest";
import { api, axe, close, settled, visit } from "./browser";
import { serveLog } from "./made/large";

afterAll(close);

test("a log stays at the side from page to page, over a reload, until Esc", async () => {
  const { page, context, wrong } = await visit("/installs");
  await serveLog(page, "str_made", 5_000, (seq) => `line ${seq} of the log`);
  await page.goto(page.url() + "?side=log%3Astr_made");
  const side = page.getByRole("complementary", { name: "Log at the side" });
  await side.getByText("line 5000 of the log").waitFor();
  await axe(page);
  const wide = async () => (await side.boundingBox())!.width;
  const before = await wide();
  await side.getByRole("separator", { name: "Width of the side" }).press("ArrowLeft");
  await expect.poll(wide).toBe(before + 32);

  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Apps" }).click();
  await page.waitForURL("**/ui/apps?side=*");
  await page.getByRole("table").getByRole("link", { name: "probe" }).click();
  await page.getByRole("link", { name: "Releases" }).click();
  await page.waitForURL("**tab=releases*");
  await side.getByText("line 5000 of the log").waitFor();
  await page.reload();
  await side.getByText("line 5000 of the log").waitFor();
  expect(await wide()).toBe(before + 32);

  await page.keyboard.press("Escape");
  await side.waitFor({ state: "detached" });
  expect(page.url()).not.toContain("side=");
  await page.goBack();
  await side.waitFor();
  expect(wrong).toEqual([]);
  await context.close();
});

test("a change is kept at the side, and reviewed from there, on a phone too", async () => {
  let change: string | undefined;
  // The first one made something; a later one may have nothing to do.
  const ofOne = async () =>
    (change = (await api<{ items: { id: string; resource?: { name: string } }[] }>("GET", "/changes?limit=200")).items.findLast(
      (c) => c.resource?.name === "one",
    )?.id);
  await expect.poll(ofOne, { timeout: 60_000 }).toBeTruthy();
  const { page, context, wrong } = await visit(`/changes/${change}`);
  await settled(page);
  await page.getByRole("link", { name: "At the side" }).click();
  const side = page.getByRole("complementary", { name: "Change at the side" });
  await side.getByRole("list", { name: "What it does" }).getByRole("listitem").first().waitFor();
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Installs" }).click();
  await page.waitForURL("**/ui/installs?side=*");
  await side.getByRole("region", { name: "Approvals" }).waitFor();
  await settled(page);
  await axe(page);
  await page.setViewportSize({ width: 375, height: 812 });
  expect((await side.boundingBox())!.width).toBe(375);
  await axe(page);
  await side.getByRole("link", { name: "Review" }).click();
  await page.waitForURL(`**/ui/changes/${change}`);
  await side.waitFor({ state: "detached" });
  expect(wrong).toEqual([]);
  await context.close();
});

test("a URL that keeps nothing that there is shows the page alone", async () => {
  const { page, context, wrong } = await visit("/apps?side=log%3A..%2Fme");
  await settled(page);
  expect(await page.getByRole("complementary").count()).toBe(0);
  expect(wrong).toEqual([]);
  await context.close();
});

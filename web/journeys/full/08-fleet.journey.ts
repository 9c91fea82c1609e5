// Many installs at once.
import { afterAll, expect, test } from "vitest";
import { api, close, settled, visit } from "../browser";
import { approveEach, ready, turnPage, watch, well } from "./life";

afterAll(close);

const names = (page: Awaited<ReturnType<typeof visit>>["page"]) =>
  page
    .getByRole("rowheader")
    .getByRole("link")
    .evaluateAll((links) => links.map((l) => l.getAttribute("href")?.split("/").at(-1)));

test("installs are filtered by a label, and the filter is kept under a name", async () => {
  await ready("acme");
  await ready("globex", "tier=gold");
  await api("PATCH", "/installs/acme", { labels: { tier: "silver" } });
  const { page, wrong, context } = await visit("/installs");
  await settled(page);
  const filter = page.getByRole("combobox", { name: "Filter installs" });
  await filter.fill("label:tier=");
  await page.getByRole("option", { name: /tier=gold/ }).click();
  await page.getByText(/^1 of \d+ installs/).waitFor();
  expect(await names(page)).toEqual(["globex"]);
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByLabel("Name of this view").fill("our gold");
  await page.getByRole("button", { name: "Save view" }).click();
  await page.keyboard.press("Escape");
  await filter.fill("");
  await page.getByRole("rowheader", { name: /acme/ }).waitFor();
  await page.reload();
  await settled(page);
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("button", { name: "our gold", exact: true }).click();
  await page.getByText(/^1 of \d+ installs/).waitFor();
  expect(new URL(page.url()).searchParams.get("q")).toContain("label:tier=gold");
  expect(wrong).toEqual([]);
  await context.close();
});

test("a label of an install leads to all that have it", async () => {
  const { page, wrong, context } = await visit("/installs/globex");
  await settled(page);
  await page.getByRole("link", { name: "tier=gold" }).click();
  await page.getByText(/^1 of \d+ installs/).waitFor();
  expect(await names(page)).toEqual(["globex"]);
  expect(wrong).toEqual([]);
  await context.close();
});

test("two installs are selected in the matrix and deployed at once, after a look at what would happen", async () => {
  await ready("acme");
  await ready("globex");
  await turnPage("for all");
  const seen = await watch("/installs");
  const { page } = seen;
  for (const name of ["acme", "globex"]) await page.getByRole("checkbox", { name: `Select ${name}` }).click();
  const bar = page.getByRole("toolbar", { name: "With the selected installs" });
  await bar.getByText("2 selected").waitFor();
  await bar.getByRole("button", { name: "Deploy newest release…" }).click();
  const dialog = page.getByRole("dialog");
  await expect.poll(() => dialog.getByText("would start").count()).toBe(2);
  await dialog.getByRole("button", { name: "Deploy newest release to 2 installs" }).click();
  await expect
    .poll(() =>
      dialog
        .getByRole("listitem")
        .getByRole("link", { name: /waiting|running/ })
        .count(),
    )
    .toBe(2);
  for (const name of ["acme", "globex"]) {
    const work = await watch(new URL((await hrefOf(name))!, "http://x").pathname.replace("/ui", ""));
    await approveEach(work.page);
    await well(work);
  }
  await expect.poll(() => dialog.getByRole("listitem").getByText("succeeded").count(), { timeout: 30_000 }).toBe(2);
  await dialog.getByRole("button", { name: "Close" }).click();
  const newest = (await api<{ release: { number: number } }>("GET", "/apps/hello")).release.number;
  for (const name of ["acme", "globex"]) await page.getByRole("link", { name: new RegExp(`^r${newest}: journal of ${name}`) }).waitFor();
  await well(seen);

  function hrefOf(name: string) {
    const line = dialog.getByRole("listitem").filter({ hasText: name });
    return line.getByRole("link", { name: /waiting|running/ }).getAttribute("href");
  }
});

test("two installs are paused at once with a reason, and resumed", async () => {
  await ready("acme");
  await ready("globex");
  const seen = await watch("/installs");
  const { page } = seen;
  for (const name of ["acme", "globex"]) await page.getByRole("checkbox", { name: `Select ${name}` }).click();
  const bar = page.getByRole("toolbar", { name: "With the selected installs" });
  const dialog = page.getByRole("dialog");
  await bar.getByRole("button", { name: "Pause…" }).click();
  await dialog.getByLabel("Why? Those who wait will read it.").fill("stocktaking");
  await dialog.getByRole("button", { name: "Pause 2 installs" }).click();
  await expect.poll(() => dialog.getByText("done", { exact: true }).count()).toBe(2);
  await dialog.getByRole("button", { name: "Close" }).click();
  for (const name of ["acme", "globex"])
    await page.getByRole("rowheader", { name: new RegExp(`${name}.*paused by .*stocktaking`) }).waitFor();
  await bar.getByRole("button", { name: "Resume…" }).click();
  await dialog.getByRole("button", { name: "Resume 2 installs" }).click();
  await expect.poll(() => dialog.getByText("done", { exact: true }).count()).toBe(2);
  await dialog.getByRole("button", { name: "Close" }).click();
  await expect.poll(() => page.getByRole("rowheader", { name: /paused by/ }).count()).toBe(0);
  await well(seen);
});

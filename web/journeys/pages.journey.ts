// Every page, in both themes and on a phone: it comes without an error, asks nobody else,
// and is for everybody.
import { afterAll, expect, test } from "vitest";
import { axe, close, settled, visit } from "./browser";

afterAll(close);

const pages = [
  "/",
  "/installs",
  "/apps",
  "/runners",
  "/settings/members",
  "/settings/tokens",
  "/settings/sessions",
  "/settings/webhooks",
  "/settings/chain",
  "/nowhere",
];

test.each(
  pages.flatMap((path) => [
    { path, dark: false, width: 1440 },
    { path, dark: true, width: 375 },
  ]),
)("$path, dark $dark, $width px wide", async ({ path, dark, width }) => {
  const { page, context, wrong } = await visit(path, { dark, width });
  await page
    .getByText(/^(live|connecting)$/)
    .or(page.getByRole("heading", { name: "There is no such page" }))
    .first()
    .waitFor({ state: "attached" });
  await settled(page);
  await axe(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(wide).toBeLessThanOrEqual(0);
  expect(wrong).toEqual([]);
  await context.close();
});

// The most used pages, light and wide, and dark on a phone: each comes without an error, asks nobody
// else, and is for everybody. Where there is time each has both looks, else one, in turns.
import { afterAll, expect, test } from "vitest";
import { axe, close, seed, settled, visit } from "./browser";

afterAll(close);

const pages = [
  "/",
  "/installs",
  "/installs/acme",
  "/apps",
  "/apps/probe",
  "/runners",
  "/settings/members",
  "/settings/tokens",
  "/settings/sessions",
  "/settings/webhooks",
  "/settings/chain",
  "/nowhere",
];

const looks = [
  { dark: false, width: 1440 },
  { dark: true, width: 375 },
];
const both = Boolean(process.env["BERTH_WEB_FULL"]);

test.each(pages.flatMap((path, i) => (both ? looks : [looks[(i + seed) % looks.length]!]).map((look) => ({ path, ...look }))))(
  "$path, dark $dark, $width px wide",
  async ({ path, dark, width }) => {
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
  },
);

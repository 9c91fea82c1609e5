// Takes the screenshots of docs/screenshots; only where BERTH_SCREENSHOTS names the folder.
import { join } from "node:path";
import { afterAll, test } from "vitest";
import { api, close, settled, visit } from "./browser";

afterAll(close);

const folder = process.env["BERTH_SCREENSHOTS"] ?? "";

async function paths(): Promise<Record<string, string>> {
  const first = async (list: string) => (await api<{ items: { id: string }[] }>("GET", list)).items[0]?.id;
  const [runner, workflow, change] = await Promise.all([first("/runners"), first("/workflows"), first("/changes?state=proposed")]);
  return {
    inbox: "/",
    installs: "/installs",
    install: "/installs/acme",
    workflow: `/workflows/${workflow}`,
    change: `/changes/${change}`,
    apps: "/apps",
    app: "/apps/probe",
    runners: "/runners",
    runner: `/runners/${runner}`,
    members: "/settings/members",
    tokens: "/settings/tokens",
    sessions: "/settings/sessions",
    webhooks: "/settings/webhooks",
    chain: "/settings/chain",
  };
}

test("each page, light and dark, wide and on a phone", async () => {
  for (const [name, path] of Object.entries(await paths())) {
    for (const [look, options] of Object.entries({ light: {}, dark: { dark: true }, phone: { width: 375, height: 812 } })) {
      const { page, context } = await visit(path, options);
      await settled(page);
      await page.waitForTimeout(700);
      await page.screenshot({ path: join(folder, `${name}-${look}.png`) });
      await context.close();
    }
  }
}, 600_000);

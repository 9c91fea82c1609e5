// Takes the pictures of docs/screenshots; only where BERTH_SCREENSHOTS names the folder, of all
// pages or of those that BERTH_SHOTS names, with spaces between. The fleet that they show is made by services/e2e (dashboard_fleet_test.go).
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, test } from "vitest";
import type { Page } from "playwright-core";
import { api, berth, close, settled, url, visit } from "./browser";

afterAll(close);

const folder = process.env["BERTH_SCREENSHOTS"] ?? "";

interface Shot {
  name: string;
  path: string;
  phone?: boolean;
  /** What is done on the page before the picture. */
  first?: (page: Page) => Promise<unknown>;
}

async function items<T>(list: string): Promise<T[]> {
  return (await api<{ items: T[] }>("GET", list)).items;
}

interface Step {
  id: string;
  name: string;
  change?: { id: string };
}

async function shots(): Promise<Shot[]> {
  const workflow = async (install: string) => (await items<{ id: string }>(`/workflows?install=${install}&limit=1`))[0]!.id;
  const [waiting, failed, runners] = await Promise.all([
    workflow("acme"),
    workflow("initech"),
    items<{ id: string; install?: { name: string } }>("/runners"),
  ]);
  const step = async (id: string, name: string) =>
    (await api<{ steps: Step[] }>("GET", `/workflows/${id}`)).steps.find((s) => s.name === name)!;
  const [proposed, broken] = await Promise.all([step(waiting, "component/api"), step(failed, "component/worker")]);
  const { jobs } = await api<{ jobs: { operation: string; stream_ids: string[] }[] }>("GET", `/steps/${broken.id}`);
  const stream = jobs.find((job) => job.operation === "apply")!.stream_ids[0]!;
  await berth("members", "create", "grace", "--role", "operator");
  await berth("members", "create", "linus", "--role", "viewer");
  const key = join(await mkdtemp(join(tmpdir(), "vendor-")), "vendor.key");
  const { release } = await api<{ release: { number: number } }>("GET", "/apps/relay");
  await berth("releases", "keygen", key);
  await berth("releases", "sign", `relay@${release.number}`, "--key", key);
  await berth("releases", "revoke", "relay@1", "--key", key, "--reason", "loses messages that are sent while it starts");
  return [
    { name: "inbox", path: "/", phone: true },
    { name: "installs", path: "/installs", phone: true },
    { name: "install", path: "/installs/acme", phone: true },
    { name: "install-timeline", path: "/installs/umbrella?tab=timeline" },
    { name: "install-drift", path: "/installs/umbrella?tab=drift" },
    { name: "install-inputs", path: "/installs/acme?tab=inputs" },
    { name: "install-checks", path: "/installs/globex?tab=checks" },
    { name: "install-readme", path: "/installs/acme?tab=readme" },
    { name: "workflow", path: `/workflows/${waiting}`, phone: true },
    { name: "workflow-failed", path: `/workflows/${failed}` },
    { name: "change", path: `/changes/${proposed.change!.id}`, phone: true },
    { name: "change-failed", path: `/changes/${broken.change!.id}` },
    { name: "workflow-log", path: `/workflows/${failed}?step=${broken.id}&log=newest` },
    { name: "log", path: `/logs/${stream}` },
    { name: "apps", path: "/apps" },
    { name: "app", path: "/apps/relay" },
    { name: "app-releases", path: "/apps/relay?tab=releases" },
    { name: "release", path: `/apps/relay/releases/${release.number}` },
    { name: "release-revoked", path: "/apps/relay/releases/1" },
    { name: "log-at-side", path: `/installs?side=${encodeURIComponent(`log:${stream}`)}` },
    { name: "change-at-side", path: `/installs/acme?side=${encodeURIComponent(`change:${proposed.change!.id}`)}` },
    { name: "app-builds", path: "/apps/relay?tab=builds" },
    { name: "runners", path: "/runners" },
    { name: "runner", path: `/runners/${runners[0]!.id}` },
    { name: "members", path: "/settings/members" },
    { name: "tokens", path: "/settings/tokens" },
    { name: "sessions", path: "/settings/sessions" },
    { name: "customers", path: "/settings/customers" },
    { name: "webhooks", path: "/settings/webhooks" },
    { name: "chain", path: "/settings/chain" },
    {
      name: "search",
      path: "/installs",
      first: async (page) => {
        await page.keyboard.press("Control+k");
        await page.getByRole("combobox", { name: /search/i }).fill("acme");
      },
    },
  ];
}

test("each page, light and dark, and the most used on a phone", async () => {
  const only = process.env["BERTH_SHOTS"]?.split(" ");
  const all = (await shots()).filter((s) => !only || only.includes(s.name));
  for (const [look, options] of Object.entries({ light: {}, dark: { dark: true }, phone: { width: 375, height: 812 } })) {
    const { page, context } = await visit("/", options);
    for (const shot of all.filter((s) => look !== "phone" || s.phone)) {
      await page.goto(`${url}/ui${shot.path}`);
      await settled(page);
      await shot.first?.(page);
      await page.waitForTimeout(1000); // what fades in
      await page.screenshot({ path: join(folder, `${shot.name}-${look}.png`) });
    }
    await context.close();
  }
}, 900_000);

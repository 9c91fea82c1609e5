// Every page of the dashboard, with its tabs: what journeys mean by "each page".
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { api } from "./browser";

interface Place {
  /** The route, as the code names it. */
  route: string;
  /** Where it is, below /ui. */
  path: string;
}

const installTabs = ["timeline", "readme", "inputs", "actions", "checks", "drift", "secrets"];
const appTabs = ["releases", "builds", "variables", "policies"];
const sections = ["members", "tokens", "sessions", "customers", "alerts", "webhooks", "chain"];

/** The pages that need somebody who is logged in, with things that are there. */
export async function places(): Promise<Place[]> {
  const first = async (list: string) => (await api<{ items: { id: string }[] }>("GET", list)).items[0]?.id ?? "none";
  const [runner, workflow, change] = await Promise.all([first("/runners"), first("/workflows"), first("/changes?state=proposed")]);
  const { steps } = await api<{ steps: { id: string }[] }>("GET", `/workflows/${workflow}`);
  const at = (route: string) => (path: string) => ({ route, path });
  return [
    ...["/"].map(at("/")),
    ...["/installs", "/installs?swap=components", "/installs?group=customer"].map(at("/installs")),
    ...["", ...installTabs.map((t) => `?tab=${t}`)].map((t) => `/installs/acme${t}`).map(at("/installs/$install")),
    ...["", ...(steps[0] ? [`?step=${steps[0].id}`] : [])].map((s) => `/workflows/${workflow}${s}`).map(at("/workflows/$workflow")),
    ...["", "?view=split"].map((v) => `/changes/${change}${v}`).map(at("/changes/$change")),
    ...["/logs/str_made"].map(at("/logs/$stream")),
    ...["/apps"].map(at("/apps")),
    ...["", ...appTabs.map((t) => `?tab=${t}`)].map((t) => `/apps/probe${t}`).map(at("/apps/$app")),
    ...["/apps/probe/releases/1"].map(at("/apps/$app/releases/$number")),
    ...["/runners"].map(at("/runners")),
    ...[`/runners/${runner}`].map(at("/runners/$runner")),
    ...["/settings"].map(at("/settings")),
    ...sections.map((s) => `/settings/${s}`).map(at("/settings/$section")),
  ];
}

/** The routes that the code has, without the login. */
export function routes(): string[] {
  const src = join(import.meta.dirname, "../src");
  const files = [join(src, "router.tsx"), ...readdirSync(join(src, "pages")).map((folder) => join(src, "pages", folder, "routes.tsx"))];
  const found = files.flatMap((file) => {
    try {
      return [...readFileSync(file, "utf8").matchAll(/^ {2}path: "([^"]+)"/gm)].map((m) => m[1]!);
    } catch {
      return []; // a folder without routes
    }
  });
  return found.filter((route) => route !== "/login").sort();
}

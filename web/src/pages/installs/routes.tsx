// The fleet, and one install.
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { inside, text } from "~/routes";
import { patient } from "~/late";

const fleet = createRoute({
  getParentRoute: () => inside,
  path: "/installs",
  validateSearch: (raw: Record<string, unknown>): { q?: string; group?: string; sort?: string; swap?: string } =>
    text(raw, "q", "group", "sort", "swap"),
  beforeLoad: () => ({ crumbs: [{ name: "Installs", href: "/installs" }] }),
  component: lazyRouteComponent(
    patient(() => import("./Fleet")),
    "Fleet",
  ),
});

const install = createRoute({
  getParentRoute: () => inside,
  path: "/installs/$install",
  validateSearch: (raw: Record<string, unknown>): { tab?: string; resource?: string; at?: string; kind?: string; do?: string } =>
    text(raw, "tab", "resource", "at", "kind", "do"),
  beforeLoad: ({ params }) => ({
    crumbs: [
      { name: "Installs", href: "/installs" },
      { name: params.install, href: `/installs/${encodeURIComponent(params.install)}` },
    ],
  }),
  component: lazyRouteComponent(
    patient(() => import("./Install")),
    "Install",
  ),
});

export const installsRoutes = [fleet, install] as const;

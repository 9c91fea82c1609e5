// What is shipped.
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { inside, text } from "~/routes";
import { patient } from "~/late";

const apps = createRoute({
  getParentRoute: () => inside,
  path: "/apps",
  beforeLoad: () => ({ crumbs: [{ name: "Apps", href: "/apps" }] }),
  component: lazyRouteComponent(
    patient(() => import("./Apps")),
    "Apps",
  ),
});

const app = createRoute({
  getParentRoute: () => inside,
  path: "/apps/$app",
  validateSearch: (raw: Record<string, unknown>): { tab?: string; component?: string; from?: string; to?: string } =>
    text(raw, "tab", "component", "from", "to"),
  beforeLoad: ({ params }) => ({
    crumbs: [
      { name: "Apps", href: "/apps" },
      { name: params.app, href: `/apps/${encodeURIComponent(params.app)}` },
    ],
  }),
  component: lazyRouteComponent(
    patient(() => import("./App")),
    "App",
  ),
});

const release = createRoute({
  getParentRoute: () => inside,
  path: "/apps/$app/releases/$number",
  beforeLoad: ({ params }) => ({
    crumbs: [
      { name: "Apps", href: "/apps" },
      { name: params.app, href: `/apps/${encodeURIComponent(params.app)}` },
      { name: `r${params.number}`, href: `/apps/${encodeURIComponent(params.app)}/releases/${encodeURIComponent(params.number)}` },
    ],
  }),
  component: lazyRouteComponent(
    patient(() => import("./Release")),
    "Release",
  ),
});

export const appsRoutes = [apps, app, release] as const;

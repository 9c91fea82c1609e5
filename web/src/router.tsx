// The pages and their URLs. What a page shows (filters, tab, line) stands in its URL; the
// code of a page is loaded when it is first opened.
import type { QueryClient } from "@tanstack/react-query";
import { createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { appsRoutes } from "~/pages/apps/routes";
import { flowRoutes } from "~/pages/flow/routes";
import { installsRoutes } from "~/pages/installs/routes";
import { runnersRoutes } from "~/pages/runners/routes";
import { settingsRoutes } from "~/pages/settings/routes";
import { inside, root, text } from "~/routes";
import { Skeleton, Trouble } from "~/ui/Answer";
import { patient } from "~/late";

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: (raw: Record<string, unknown>): { to?: string } => text(raw, "to"),
  component: lazyRouteComponent(
    patient(() => import("~/pages/login/Login")),
    "Login",
  ),
});

const inbox = createRoute({
  getParentRoute: () => inside,
  path: "/",
  beforeLoad: () => ({ crumbs: [{ name: "Inbox", href: "/" }] }),
  component: lazyRouteComponent(
    patient(() => import("~/pages/inbox/Inbox")),
    "Inbox",
  ),
});

const routes = root.addChildren([
  login,
  inside.addChildren([inbox, ...installsRoutes, ...flowRoutes, ...appsRoutes, ...runnersRoutes, ...settingsRoutes]),
]);

export function newRouter(cache: QueryClient) {
  return createRouter({
    routeTree: routes,
    basepath: "/ui",
    context: { cache },
    defaultPreload: "intent",
    defaultPreloadStaleTime: 0,
    scrollRestoration: true,
    // The frame is there while a page waits for what it needs first.
    defaultPendingMs: 150,
    defaultPendingMinMs: 0,
    defaultPendingComponent: () => <Skeleton lines={8} />,
    defaultErrorComponent: ({ error, reset }) => <Trouble error={error} retry={reset} />,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof newRouter>;
  }
}

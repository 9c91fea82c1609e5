// Who carries it out.
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { inside } from "~/routes";

const runners = createRoute({
  getParentRoute: () => inside,
  path: "/runners",
  beforeLoad: () => ({ crumbs: [{ name: "Runners", href: "/runners" }] }),
  component: lazyRouteComponent(() => import("./Runners"), "Runners"),
});

const runner = createRoute({
  getParentRoute: () => inside,
  path: "/runners/$runner",
  beforeLoad: ({ params }) => ({
    crumbs: [
      { name: "Runners", href: "/runners" },
      { name: params.runner, href: `/runners/${params.runner}` },
    ],
  }),
  component: lazyRouteComponent(() => import("./Runner"), "Runner"),
});

export const runnersRoutes = [runners, runner] as const;

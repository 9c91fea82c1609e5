// Who carries it out.
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { inside } from "~/routes";
import { patient } from "~/late";

const runners = createRoute({
  getParentRoute: () => inside,
  path: "/runners",
  beforeLoad: () => ({ crumbs: [{ name: "Runners", href: "/runners" }] }),
  component: lazyRouteComponent(
    patient(() => import("./Runners")),
    "Runners",
  ),
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
  component: lazyRouteComponent(
    patient(() => import("./Runner")),
    "Runner",
  ),
});

export const runnersRoutes = [runners, runner] as const;

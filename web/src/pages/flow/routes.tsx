// How an install changes: workflows, changes and their logs.
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { reading } from "~/api/client";
import { inside, text } from "~/routes";
import { patient } from "~/late";

const workflow = createRoute({
  getParentRoute: () => inside,
  path: "/workflows/$workflow",
  validateSearch: (raw: Record<string, unknown>): { step?: string; log?: string; lines?: string } => text(raw, "step", "log", "lines"),
  beforeLoad: async ({ params, context: { cache } }) => {
    const found = await cache.ensureQueryData(reading("/workflows/{workflow}", { path: params })).catch(() => undefined);
    return {
      crumbs: [
        { name: "Installs", href: "/installs" },
        ...(found ? [{ name: found.install.name, href: `/installs/${found.install.name}` }] : []),
        { name: found ? `${found.kind.replaceAll("_", " ")} ${found.number}` : params.workflow, href: `/workflows/${params.workflow}` },
      ],
    };
  },
  component: lazyRouteComponent(
    patient(() => import("./Workflow")),
    "Workflow",
  ),
});

const change = createRoute({
  getParentRoute: () => inside,
  path: "/changes/$change",
  validateSearch: (raw: Record<string, unknown>): { view?: string; at?: string } => text(raw, "view", "at"),
  beforeLoad: async ({ params, context: { cache } }) => {
    void cache.prefetchQuery({ ...reading("/changes/{change}/plan/tree", { path: params }), structuralSharing: false });
    const found = await cache.ensureQueryData(reading("/changes/{change}", { path: params })).catch(() => undefined);
    return {
      crumbs: [
        { name: "Installs", href: "/installs" },
        ...(found
          ? [
              { name: found.install.name, href: `/installs/${found.install.name}` },
              { name: "Workflow", href: `/workflows/${found.workflow_id}` },
            ]
          : []),
        { name: found ? (found.resource?.name ?? found.kind.replaceAll("_", " ")) : params.change, href: `/changes/${params.change}` },
      ],
    };
  },
  component: lazyRouteComponent(
    patient(() => import("./Change")),
    "Change",
  ),
});

const logs = createRoute({
  getParentRoute: () => inside,
  path: "/logs/$stream",
  validateSearch: (raw: Record<string, unknown>): { lines?: string; find?: string } => text(raw, "lines", "find"),
  beforeLoad: ({ params }) => ({
    crumbs: [
      { name: "Installs", href: "/installs" },
      { name: "Logs", href: `/logs/${params.stream}` },
    ],
  }),
  component: lazyRouteComponent(
    patient(() => import("./Logs")),
    "Logs",
  ),
});

export const flowRoutes = [workflow, change, logs] as const;

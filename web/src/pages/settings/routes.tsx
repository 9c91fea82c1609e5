// Who may do what, and who is told.
import { createRoute, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { inside, text } from "~/routes";
import { patient } from "~/late";

const settings = createRoute({
  getParentRoute: () => inside,
  path: "/settings",
  beforeLoad: () => {
    throw redirect({ to: "/settings/$section", params: { section: "members" }, replace: true });
  },
});

const section = createRoute({
  getParentRoute: () => inside,
  path: "/settings/$section",
  validateSearch: (raw: Record<string, unknown>): { webhook?: string } => text(raw, "webhook"),
  beforeLoad: ({ params }) => ({
    crumbs: [
      { name: "Settings", href: "/settings" },
      { name: params.section, href: `/settings/${params.section}` },
    ],
  }),
  component: lazyRouteComponent(
    patient(() => import("./Settings")),
    "Settings",
  ),
});

export const settingsRoutes = [settings, section] as const;

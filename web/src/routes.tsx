// What all pages hang below: the root, and what needs somebody who is known.
import { Problem } from "@berth/client";
import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, redirect, retainSearchParams } from "@tanstack/react-router";
import { reading } from "~/api/client";
import { Frame } from "~/frame/Frame";
import { NotHere } from "~/frame/NotHere";
import { Trouble } from "~/ui/Answer";

interface Context {
  cache: QueryClient;
}

export const root = createRootRouteWithContext<Context>()({ notFoundComponent: NotHere });

export const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  // What is at the side stays there until it is closed.
  validateSearch: (raw: Record<string, unknown>): { side?: string | undefined } => text(raw, "side"),
  search: { middlewares: [retainSearchParams(["side"])] },
  beforeLoad: async ({ context, location }) => {
    try {
      return { me: await context.cache.ensureQueryData(reading("/me")) };
    } catch (error) {
      if (error instanceof Problem && error.status === 401) throw redirect({ to: "/login", search: { to: location.href } });
      throw error;
    }
  },
  component: Frame,
  errorComponent: ({ error, reset }) => (
    <main className="p-6">
      <Trouble error={error} retry={reset} />
    </main>
  ),
});

/** The texts of a URL's search by their names; what is no text is left out. */
export function text<K extends string>(raw: Record<string, unknown>, ...names: K[]): { [N in K]?: string } {
  const out: { [N in K]?: string } = {};
  for (const name of names) {
    const value = raw[name];
    if (typeof value === "string" && value !== "") out[name] = value;
    else if (typeof value === "number") out[name] = String(value);
  }
  return out;
}

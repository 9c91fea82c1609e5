// Loads the code of all pages while nothing else is done: a page opens without waiting for it.
import type { AnyRoute, AnyRouter } from "@tanstack/react-router";

/** How long the first page has for itself, in milliseconds. */
const first = 1_500;

/** Begins; call the result to end. */
export function warm(router: AnyRouter): () => void {
  // Who pays for each byte loads what they open.
  if ((navigator as { connection?: { saveData?: boolean } }).connection?.saveData) return () => undefined;
  let ended = false;
  const idle = () =>
    new Promise<void>((resolve) => ("requestIdleCallback" in window ? requestIdleCallback(() => resolve()) : setTimeout(resolve, 50)));
  const load = async () => {
    for (const route of Object.values(router.routesById as Record<string, AnyRoute>)) {
      await idle();
      if (ended) return;
      await router.loadRouteChunk(route);
    }
  };
  // One that is gone after an upgrade is said when its page is opened.
  const timer = setTimeout(() => void load().catch(() => undefined), first);
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}

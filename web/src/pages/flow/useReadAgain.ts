import { useQueryClient } from "@tanstack/react-query";

/** Reads again what a decision or an act may have changed: changes, workflows and steps. */
export function useReadAgain(): () => Promise<void> {
  const cache = useQueryClient();
  return () =>
    cache.invalidateQueries({
      predicate: ({ queryKey: [path] }) => typeof path === "string" && /^\/(changes|workflows|steps)/.test(path),
    });
}

import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";

/** Does something and reads again what it changed, besides what events say: not everything that people change is an event. */
export function useAct<A = void, R = unknown>(act: (a: A) => Promise<R>, changes: QueryKey[] = []) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: () => Promise.all(changes.map((queryKey) => cache.invalidateQueries({ queryKey }))),
  });
}

import { useEffect, useState, useSyncExternalStore } from "react";
import { duration, exact, relative } from "./time";

// One clock for all times of a page.
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const tick = () => {
  now = Date.now();
  listeners.forEach((listener) => listener());
};
function subscribe(listener: () => void) {
  listeners.add(listener);
  if (timer === undefined) {
    now = Date.now(); // nobody looked at it for a while
    timer = setInterval(tick, 10_000);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** When something was or will be: relative, exact on hover. */
export function Time({ at }: { at: string | number }) {
  const then = new Date(at).getTime();
  const current = useSyncExternalStore(subscribe, () => now);
  return (
    <time dateTime={new Date(then).toISOString()} title={exact(then)} className="whitespace-nowrap tabular-nums">
      {relative(then, current)}
    </time>
  );
}

/** How long something took, or takes until now. */
export function Took({ from, to }: { from: string; to?: string | undefined }) {
  const [current, setCurrent] = useState(Date.now);
  useEffect(() => {
    if (to) return;
    const every = setInterval(() => setCurrent(Date.now()), 1000);
    return () => clearInterval(every);
  }, [to]);
  return <span className="tabular-nums">{duration((to ? Date.parse(to) : Math.max(current, Date.parse(from))) - Date.parse(from))}</span>;
}

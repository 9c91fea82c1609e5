// When deliveries are read again. Pure.

/** A delivery that nobody tried yet is tried at once. */
const soon = 2_000;
const latest = 5 * 60_000;

/** In how many milliseconds one of these may have been tried; false when none is to be. No event tells of that. */
export function untilTried(deliveries: readonly { state: string; attempts: number; next_at?: string }[], now: number): number | false {
  const waits = deliveries
    .filter((d) => d.state === "pending")
    .map((d) => (d.attempts > 0 && d.next_at ? Date.parse(d.next_at) + soon - now : soon));
  return waits.length > 0 && Math.min(Math.max(Math.min(...waits), soon), latest);
}

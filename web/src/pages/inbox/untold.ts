// Alerts that nobody was told of yet. Pure.

/** People are told of an alert this long after it opened, at the latest (docs/guides/install-alerts.md). */
const toldWithin = 31_000;

/** How long, in milliseconds, until people were told of all alerts; false when they were. One that ends before leaves without an event. */
export function untilTold(alerts: readonly { opened_at?: string }[], now: number): number | false {
  const left = alerts.map((a) => (a.opened_at ? Date.parse(a.opened_at) + toldWithin - now : 0));
  const longest = Math.min(Math.max(0, ...left), toldWithin);
  return longest > 0 && longest;
}

// Times and durations in words. Pure, but for the viewer's zone.

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** "4 min ago", "in 3 h"; within half a minute it is "now". */
export function relative(at: number, now: number): string {
  const away = Math.abs(now - at);
  if (away < 30 * second) return "now";
  const words =
    away < hour
      ? `${Math.max(1, Math.round(away / minute))} min`
      : away < day
        ? `${Math.round(away / hour)} h`
        : `${Math.round(away / day)} d`;
  return at < now ? `${words} ago` : `in ${words}`;
}

/** "850 ms", "1.2 s", "4 min 10 s", "3 h 5 min". */
export function duration(ms: number): string {
  if (ms < second) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * second) return `${(ms / second).toFixed(1)} s`;
  if (ms < minute) return `${Math.floor(ms / second)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min ${Math.floor((ms % minute) / second)} s`;
  if (ms < day) return `${Math.floor(ms / hour)} h ${Math.floor((ms % hour) / minute)} min`;
  return `${Math.floor(ms / day)} d ${Math.floor((ms % day) / hour)} h`;
}

/** The exact time in the viewer's zone. */
export const exact = (at: number): string => (Number.isNaN(at) ? "" : format.format(at));

// Made once: each line of a log has a time.
const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

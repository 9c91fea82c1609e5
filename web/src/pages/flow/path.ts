// What of a workflow decides how long it takes. Pure.

/** What of a step says so. */
export interface Timed {
  name: string;
  needs: readonly string[];
  state: string;
  started_at?: string;
  finished_at?: string;
}

/**
 * The names of the steps that nothing else was waited for, first to last: from the step that ended
 * last, or is at it still, back over the need of each that ended last.
 */
export function criticalPath(steps: readonly Timed[], now: number): string[] {
  const byName = new Map(steps.map((s) => [s.name, s]));
  const end = (s: Timed) => (s.finished_at ? Date.parse(s.finished_at) : s.started_at ? now : -Infinity);
  const latest = (among: readonly Timed[]) =>
    among.reduce<Timed | undefined>((best, s) => {
      if (end(s) === -Infinity || s.state === "skipped") return best;
      if (!best || end(s) > end(best)) return s;
      // Of two that are at it, the one that began first holds up the most.
      return end(s) === end(best) && start(s) < start(best) ? s : best;
    }, undefined);
  const path: string[] = [];
  for (let at = latest(steps); at && !path.includes(at.name);) {
    path.unshift(at.name);
    at = latest(at.needs.flatMap((name) => byName.get(name) ?? []));
  }
  return path;
}

const start = (s: Timed) => (s.started_at ? Date.parse(s.started_at) : Infinity);

/** Where the bar of a step is, in parts of the whole: from 0 to 1. */
export interface Bar {
  from: number;
  width: number;
}

/** The bars of all steps that began, by name, and how long the whole is in ms. */
export function bars(steps: readonly Timed[], now: number): { bars: Map<string, Bar>; begin: number; whole: number } {
  const began = steps.flatMap((s) => (s.started_at ? [Date.parse(s.started_at)] : []));
  if (began.length === 0) return { bars: new Map(), begin: now, whole: 0 };
  const begin = Math.min(...began);
  const end = Math.max(...steps.map((s) => (s.finished_at ? Date.parse(s.finished_at) : s.started_at ? now : begin)));
  const whole = Math.max(end - begin, 1);
  const out = new Map<string, Bar>();
  for (const s of steps) {
    if (!s.started_at) continue;
    const from = Date.parse(s.started_at) - begin;
    const to = (s.finished_at ? Date.parse(s.finished_at) : Math.max(now, begin)) - begin;
    out.set(s.name, { from: from / whole, width: Math.max(0, to - from) / whole });
  }
  return { bars: out, begin, whole };
}

/** The steps that need a step, directly. */
export const neededBy = (steps: readonly Timed[], name: string): string[] => steps.filter((s) => s.needs.includes(name)).map((s) => s.name);

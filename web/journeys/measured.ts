// What journeys measure: said at the end of a file, and held to a multiple of its budget that
// a busy machine keeps.
import type { Page } from "playwright-core";
import { afterAll, expect } from "vitest";
import { open } from "./browser";

/** How much slower than the budget a busy machine may be. */
const busy = process.env["BERTH_WEB_FULL"] ? 6 : 12;

const said: string[] = [];
afterAll(() => console.log(said.join("\n")));

export const say = (line: string) => void said.push(line);

/** Says how long something took, of its budget in milliseconds. */
export function within(what: string, ms: number, budget: number): void {
  say(`${what}: ${Math.round(ms)} ms of ${budget}`);
  expect(ms, what).toBeLessThan(budget * busy);
}

/** Says a number that does not depend on the machine, of what it may be at most. */
export function atMost(what: string, number: number, most: number, unit = ""): void {
  say(`${what}: ${Number(number.toFixed(1))}${unit} of ${most}`);
  expect(number, what).toBeLessThan(most);
}

/** The median, and how it is at worst in 95 of 100. */
export function spread(times: readonly number[]): { median: number; p95: number; worst: number } {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
  return { median: at(0.5), p95: at(0.95), worst: at(1) };
}

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  tdur?: number;
}

/**
 * The longest that a page's thread worked without a break, in milliseconds of the processor: what a frame
 * costs, however busy the machine is with others.
 */
export async function longestWork(page: Page, act: () => Promise<unknown>): Promise<number> {
  const browser = await open();
  await browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await act();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const main = traceEvents.filter((e) => e.name === "UpdateLayoutTree").at(-1); // only the thread of a page does that
  const tasks = traceEvents.filter((e) => e.name === "RunTask" && e.pid === main?.pid && e.tid === main.tid);
  expect(tasks.length, "tasks of the page").toBeGreaterThan(0);
  return Math.max(...tasks.map((e) => e.tdur ?? 0)) / 1000;
}

// Which lines of a log are on the screen, which are fetched, and which are kept. Pure:
// a log of millions of lines is never whole in the browser.

/** Height of a line in px. */
export const lineHeight = 20;

/** Lines are fetched and kept in pages of so many. */
export const pageSize = 500;

/** So many pages are kept around what is on the screen. */
const maxPages = 24;

// Browsers cannot make an element higher than about 17,000,000 px. Beyond this height, a
// pixel of the scroll bar is more than a pixel of lines.
const maxHeight = 12_000_000;

/** The height of the whole in the scroll bar. */
export const heightOf = (lines: number): number => Math.min(lines * lineHeight, maxHeight);

export interface Window {
  /** The first line on the screen and the last one, from 1; last is below first when there is none. */
  first: number;
  last: number;
  /** Where the first line stands in the scrolled element, in px. */
  top: number;
}

/** The lines on the screen. */
export function windowAt(scrollTop: number, viewHeight: number, lines: number): Window {
  const height = heightOf(lines);
  const whole = lines * lineHeight;
  const scrollable = Math.max(0, height - viewHeight);
  const at = Math.min(Math.max(scrollTop, 0), scrollable);
  // How far into the lines that is; the same when nothing is compressed.
  const into = scrollable === 0 ? 0 : (at / scrollable) * Math.max(0, whole - viewHeight);
  const first = Math.min(Math.floor(into / lineHeight) + 1, Math.max(1, lines));
  const last = Math.min(lines, Math.ceil((into + viewHeight) / lineHeight));
  return { first, last, top: at - (into - (first - 1) * lineHeight) };
}

/** Where to scroll so that a line stands at the top, or in the middle, of the screen. */
export function scrollTo(line: number, viewHeight: number, lines: number, place: "top" | "middle" = "top"): number {
  const scrollable = Math.max(0, heightOf(lines) - viewHeight);
  const into = Math.max(0, lines * lineHeight - viewHeight);
  const wanted = (line - 1) * lineHeight - (place === "middle" ? (viewHeight - lineHeight) / 2 : 0);
  return into === 0 ? 0 : Math.min(Math.max(wanted, 0), into) * (scrollable / into);
}

/** The page that a line is in, from 0. */
export const pageOf = (line: number): number => Math.floor((line - 1) / pageSize);

/** The pages to fetch, what is on the screen first, then one on each side. */
export function pagesToFetch({ first, last }: Pick<Window, "first" | "last">, lines: number, has: (page: number) => boolean): number[] {
  if (lines === 0 || last < first) return [];
  const wanted: number[] = [];
  for (let page = pageOf(first); page <= pageOf(last); page++) wanted.push(page);
  wanted.push(pageOf(last) + 1, pageOf(first) - 1);
  return wanted.filter((page) => page >= 0 && page <= pageOf(lines) && !has(page));
}

/** The pages that go when too many are kept: those farthest from the screen. */
export function pagesToDrop(kept: Iterable<number>, { first, last }: Pick<Window, "first" | "last">, most = maxPages): number[] {
  const middle = (pageOf(first) + pageOf(Math.max(first, last))) / 2;
  return [...kept].sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle)).slice(most);
}

/** A range of lines as it stands in a URL. */
export interface Range {
  from: number;
  to: number;
}

/** Reads "L10", "L10-L20", "10-20"; undefined for anything else. */
export function readRange(text: string | undefined): Range | undefined {
  const found = /^L?(\d{1,15})(?:-L?(\d{1,15}))?$/.exec(text ?? "");
  if (!found) return undefined;
  const [a, b] = [Number(found[1]), Number(found[2] ?? found[1])];
  return a === 0 || b === 0 ? undefined : { from: Math.min(a, b), to: Math.max(a, b) };
}

export const rangeText = ({ from, to }: Range): string => (from === to ? `L${from}` : `L${from}-L${to}`);

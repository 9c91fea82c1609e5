import { expect, test } from "vitest";
import { heightOf, lineHeight, pagesToDrop, pagesToFetch, readRange, scrollTo, windowAt } from "./window";

const view = 600; // 30 lines

test.each<[string, scrollTop: number, lines: number, first: number, last: number]>([
  ["no line", 0, 0, 1, 0],
  ["fewer than fit", 0, 10, 1, 10],
  ["the top of many", 0, 1_000, 1, 30],
  ["between two lines", 30, 1_000, 2, 32],
  ["the bottom", 1_000 * lineHeight - view, 1_000, 971, 1_000],
  ["beyond the bottom", 10_000_000, 1_000, 971, 1_000],
  ["above the top", -50, 1_000, 1, 30],
  ["the top of a million", 0, 1_000_000, 1, 30],
  ["the bottom of a million", heightOf(1_000_000) - view, 1_000_000, 999_971, 1_000_000],
])("%s", (_, scrollTop, lines, first, last) => {
  expect(windowAt(scrollTop, view, lines)).toMatchObject({ first, last });
});

test("every line of a million can be scrolled to, and stands where it should", () => {
  for (const line of [1, 2, 499, 500, 501, 250_000, 777_777, 999_969, 999_970, 999_971]) {
    const at = windowAt(scrollTo(line, view, 1_000_000), view, 1_000_000);
    expect(Math.abs(at.first - line)).toBeLessThanOrEqual(1);
    expect(at.last).toBeGreaterThanOrEqual(line);
  }
});

test("the lines on the screen reach over all of it", () => {
  for (const scrollTop of [0, 7, 123_456, 6_000_000, heightOf(1_000_000) - view]) {
    const { first, last, top } = windowAt(scrollTop, view, 1_000_000);
    expect(top).toBeLessThanOrEqual(scrollTop);
    expect(top + (last - first + 1) * lineHeight).toBeGreaterThanOrEqual(scrollTop + view - 0.001);
  }
});

test("the middle of the screen", () => {
  const { first, last } = windowAt(scrollTo(500, view, 1_000, "middle"), view, 1_000);
  expect([first, last]).toEqual([485, 515]);
});

test.each<[string, { first: number; last: number }, number, number[], number[]]>([
  ["nothing of an empty log", { first: 1, last: 0 }, 0, [], []],
  ["the one page there is, and the one it grows into", { first: 1, last: 30 }, 100, [], [0]],
  ["its neighbours after it", { first: 1_001, last: 1_030 }, 5_000, [], [2, 3, 1]],
  ["both pages of a border", { first: 490, last: 510 }, 5_000, [], [0, 1, 2]],
  ["only what is not there", { first: 490, last: 510 }, 5_000, [0, 2], [1]],
])("fetches %s", (_, window, lines, has, want) => {
  expect(pagesToFetch(window, lines, (page) => has.includes(page))).toEqual(want);
});

test("what is far from the screen goes first", () => {
  expect(pagesToDrop([0, 1, 2, 50, 51, 52], { first: 25_001, last: 25_030 }, 3)).toEqual([2, 1, 0]);
  expect(pagesToDrop([0, 1], { first: 1, last: 30 }, 3)).toEqual([]);
});

test.each<[string | undefined, { from: number; to: number } | undefined]>([
  ["L10", { from: 10, to: 10 }],
  ["L10-L20", { from: 10, to: 20 }],
  ["20-10", { from: 10, to: 20 }],
  ["L0", undefined],
  ["L1-", undefined],
  ["L1e3", undefined],
  ["L-5", undefined],
  [undefined, undefined],
])("the range %s", (text, want) => {
  expect(readRange(text)).toEqual(want);
});

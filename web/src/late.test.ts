import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { after, NotLoaded, type Pages, patient } from "./late";

test.each([
  ["a control plane that is away comes back", "silent", 0, "ask again"],
  ["however long that takes", "silent", 1_000, "ask again"],
  ["one that is there may have answered too late", "same", 1, "ask again"],
  ["what never comes from it is broken", "same", 4, "give up"],
  ["another release has other files", "other", 1, "outdated"],
] satisfies [string, Pages, number, string][])("%s", (_, pages, failures, want) => {
  expect(after(pages, failures)).toBe(want);
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Loads what fails so often, while the control plane says this of its pages. */
async function load(fails: number, pages: Pages) {
  let asked = 0;
  const loading = patient(
    () => (++asked > fails ? Promise.resolve("code") : Promise.reject(new Error("no file"))),
    () => Promise.resolve(pages),
  )().catch((error: unknown) => error);
  await vi.runAllTimersAsync();
  return { got: await loading, asked };
}

test("code comes after a control plane was away for minutes", async () => {
  const began = Date.now();
  expect(await load(30, "silent")).toEqual({ got: "code", asked: 31 });
  expect(Date.now() - began).toBeGreaterThan(120_000);
});

test("after an upgrade, the page says so at once", async () => {
  const { got, asked } = await load(9, "other");
  expect(got).toEqual(new NotLoaded("Berth was upgraded since this page was opened. Load it again to go on."));
  expect(asked).toBe(1);
});

test("code that throws is not run for ever", async () => {
  expect(await load(9, "same")).toEqual({ got: new NotLoaded("A part of this page could not be loaded."), asked: 4 });
});

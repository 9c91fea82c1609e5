import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Together } from "./together";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function asked() {
  const requests: string[][] = [];
  const together = new Together(
    (ids) => {
      requests.push(ids);
      if (ids.includes("bad")) return Promise.reject(new Error("no"));
      return Promise.resolve(new Map(ids.filter((id) => id !== "gone").map((id) => [id, id.toUpperCase()])));
    },
    3,
    50,
  );
  return { requests, together };
}

test("what is asked for within a moment is read together, each once", async () => {
  const { requests, together } = asked();
  const answers = Promise.all([together.ask("a"), together.ask("gone"), together.ask("a")]);
  expect(requests).toEqual([]);
  await vi.advanceTimersByTimeAsync(50);
  expect(await answers).toEqual(["A", undefined, "A"]);
  expect(requests).toEqual([["a", "gone"]]);
});

test("so many are read at once, and the others after a moment of their own", async () => {
  const { requests, together } = asked();
  const answers = Promise.all(["a", "b", "c", "d"].map((id) => together.ask(id)));
  expect(requests).toEqual([["a", "b", "c"]]);
  await vi.advanceTimersByTimeAsync(50);
  expect(await answers).toEqual(["A", "B", "C", "D"]);
  expect(requests).toEqual([["a", "b", "c"], ["d"]]);
});

test("an error is told to all that asked, and to no other", async () => {
  const { together } = asked();
  const failed = Promise.allSettled([together.ask("a"), together.ask("bad")]);
  await vi.advanceTimersByTimeAsync(50);
  expect((await failed).map((r) => r.status)).toEqual(["rejected", "rejected"]);
  const next = together.ask("a");
  await vi.advanceTimersByTimeAsync(50);
  expect(await next).toBe("A");
});

import { expect, test } from "vitest";
import { own } from "./own";

test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "b"])("%s is in no table", (key) => {
  expect(own({ a: 1 }, key)).toBeUndefined();
});

test("what is there is found", () => {
  expect(own({ a: 1 }, "a")).toBe(1);
});

import { expect, test } from "vitest";
import { keep, kept, widthOf } from "./kept";

test("a URL names a log or a change", () => {
  expect(kept("log:str_01")).toEqual({ is: "log", id: "str_01" });
  expect(kept(keep({ is: "change", id: "chg_01" }))).toEqual({ is: "change", id: "chg_01" });
  for (const bad of [undefined, "", "log:", "log", "page:x", "log:../me", "log:a b", `change:${"x".repeat(81)}`])
    expect(kept(bad)).toBeUndefined();
});

test.each([
  ["as it was", 600, 1440, 600],
  ["the first time", null, 1440, 480],
  ["not so wide that no page is left", 2000, 1440, 800],
  ["not narrower than a line", 10, 1440, 320],
  ["on a small screen", 600, 700, 320],
])("the side is %s", (_, wanted, window, width) => {
  expect(widthOf(wanted, window)).toBe(width);
});

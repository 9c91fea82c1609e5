import { expect, test } from "vitest";
import { inside } from "./inside";

test.each([
  [undefined, "/"],
  ["/installs/acme?tab=graph", "/installs/acme?tab=graph"],
  ["/ui/installs", "/installs"],
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["/ui//evil.example", "/"],
  ["https://evil.example", "/"],
  ["javascript:alert(1)", "/"],
  ["/login?to=/login", "/"],
])("after a login with to=%s it goes to %s", (to, want) => {
  expect(inside(to)).toBe(want);
});

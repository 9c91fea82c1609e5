import { expect, test } from "vitest";
import { spread } from "./spread";

const install = (name: string, app: string, release?: number, health = "healthy") =>
  ({
    install: { name, app: { id: app, name: app }, health, ...(release ? { release: { id: `rel_${release}`, number: release } } : {}) },
    newest_release: { id: "rel_3", number: 3 },
  }) as Parameters<typeof spread>[0][number];

test("installs are counted by app and release, the newest first", () => {
  const found = spread([install("a", "shop", 2, "unhealthy"), install("b", "shop", 3), install("c", "shop"), install("d", "hello", 3)]);
  expect(found.get("shop")).toEqual({
    all: 3,
    newest: 1,
    unhealthy: 1,
    releases: [
      { number: 3, installs: ["b"] },
      { number: 2, installs: ["a"] },
      { number: 0, installs: ["c"] },
    ],
  });
  expect(found.get("hello")?.newest).toBe(1);
});

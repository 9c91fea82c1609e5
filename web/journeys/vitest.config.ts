import { defineConfig } from "vitest/config";

// Journeys go through a real system, one after the other: they share its installs.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["*.journey.ts"],
    exclude: process.env["BERTH_SCREENSHOTS"] ? [] : ["screenshots.journey.ts"],
    fileParallelism: false,
    testTimeout: 90_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } }, // as locators wait
    retry: 0,
  },
});

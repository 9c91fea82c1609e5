import { BaseSequencer, type TestSpecification } from "vitest/node";
import { defineConfig } from "vitest/config";

/** By name: the first login comes before all, and a runner falls silent while others go on. */
class ByName extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve([...files].sort((a, b) => a.moduleId.localeCompare(b.moduleId)));
  }
}

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["*.journey.ts"],
    fileParallelism: false,
    sequence: { sequencer: ByName },
    testTimeout: 240_000, // a look at health comes each minute
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } }, // as locators wait
    retry: 0,
  },
});

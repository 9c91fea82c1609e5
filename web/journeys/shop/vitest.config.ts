import { mergeConfig } from "vitest/config";
import lives from "../full/vitest.config";

export default mergeConfig(lives, { test: { root: import.meta.dirname } });

// Fails when the first load is over its budget: what every page needs, packed.
//
//	node budget.js FOLDER
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const budget = 180 * 1024; // bytes of JavaScript
const folder = process.argv[2];
const manifest = JSON.parse(readFileSync(join(folder, ".vite/manifest.json"), "utf8"));

// What the entry imports at once, and what that imports; not what is loaded later.
const first = new Set();
const add = (name) => {
  if (first.has(name)) return;
  first.add(name);
  manifest[name].imports?.forEach(add);
};
Object.keys(manifest)
  .filter((name) => manifest[name].isEntry)
  .forEach(add);
const files = ["theme.js", ...[...first].map((name) => manifest[name].file).filter((file) => file.endsWith(".js"))];
const size = files.reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file)), { level: 9 }).length, 0);
console.log(`the first load has ${(size / 1024).toFixed(1)} KiB of JavaScript (gzip) of ${budget / 1024}`);
if (size > budget) {
  console.error("that is over the budget: load later what not every page needs");
  process.exit(1);
}

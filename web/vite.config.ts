import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// `vite` serves the pages and passes everything else on to the control plane.
const berth = process.env["BERTH_URL"] ?? "http://127.0.0.1:8700";

export default defineConfig({
  base: "/ui/",
  plugins: [react(), tailwind()],
  resolve: {
    alias: {
      "@berth/client": here("../sdk/typescript/src/index.ts"),
      "openapi-fetch": here("node_modules/openapi-fetch"),
      "~": here("src"),
    },
  },
  build: {
    target: "es2022",
    outDir: process.env["BERTH_WEB_OUT"] ?? "dist",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    cssCodeSplit: false, // Vite asks for the styles of a piece once only; one whose code came late would be without
    assetsInlineLimit: 0, // data: URLs would need a wider content security policy
    reportCompressedSize: false,
    manifest: true,
  },
  server: { host: "127.0.0.1", proxy: { "^/(?!ui/)": { target: berth, changeOrigin: false } } },
  test: { include: ["src/**/*.test.ts"] },
});

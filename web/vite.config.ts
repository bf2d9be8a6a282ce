import { fileURLToPath, URL } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { compressed } from "./tools/compressed.ts";

const lab = process.env.WQLAB_URL ?? "http://127.0.0.1:8750";
const served = ["/api", "/r/", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"];

export default defineConfig({
  plugins: [react(), compressed()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    // Browsers of spring 2024 and later: light-dark(), CSS nesting and layers stay as they are written.
    target: ["chrome123", "firefox124", "safari17.5"],
    modulePreload: { polyfill: false },
    // Everything is a file of its own: the page's policy allows no data: URL.
    assetsInlineLimit: 0,
    manifest: true,
    reportCompressedSize: false,
  },
  server: { proxy: Object.fromEntries(served.map(path => [path, { target: lab, changeOrigin: false }])) },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["./src/testing/setup.ts"],
    css: false,
    restoreMocks: true,
    // Files share their thread's document, which each test's clean-up leaves empty: six times faster than one for each.
    pool: "threads",
    isolate: false,
    // Against hanging only: a machine that also measures kernels may be slow.
    testTimeout: 120_000,
  },
});

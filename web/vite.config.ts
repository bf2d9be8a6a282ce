import { existsSync, realpathSync } from "node:fs";
import { fileURLToPath, URL } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { compressed } from "./tools/compressed.ts";
import { apiProxy } from "./tools/proxy.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const packages = path("./node_modules");

export default defineConfig({
  plugins: [react(), compressed()],
  resolve: { alias: { "@": path("./src") } },
  build: {
    // Browsers of spring 2024 and later, which support light-dark(), CSS nesting and layers.
    target: ["chrome123", "firefox124", "safari17.5"],
    modulePreload: { polyfill: false },
    // No inlined assets: the content security policy allows no data: URLs.
    assetsInlineLimit: 0,
    manifest: true,
    rolldownOptions: {
      output: {
        // What most pages share is one file each: the bundler's own chunks were up to 40 requests of a kilobyte.
        codeSplitting: {
          groups: [
            { name: "shared", test: /\/src\/(?:app|api|kit|lib|parts)\//, minShareCount: 2 },
            {
              name: "libraries",
              test: /node_modules\/(?:@tanstack|@mantine|@floating-ui|react|openapi-fetch)/,
              minShareCount: 2,
            },
          ],
        },
      },
    },
    reportCompressedSize: false,
  },
  server: {
    proxy: apiProxy(process.env.WQLAB_URL ?? "http://127.0.0.1:8750"),
    // node_modules may be a symbolic link to the lab's cache.
    fs: { allow: [path("."), ...(existsSync(packages) ? [realpathSync(packages)] : [])] },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["./src/testing/setup.ts"],
    css: false,
    restoreMocks: true,
    // Test files of a thread share a document, which each test's clean-up empties: six times faster than isolation.
    pool: "threads",
    isolate: false,
    // Only guards against hanging tests: a machine that also measures kernels may be slow.
    testTimeout: 120_000,
  },
});

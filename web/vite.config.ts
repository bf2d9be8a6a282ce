import { existsSync, realpathSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath, URL } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { compressed } from "./tools/compressed.ts";
import { apiProxy } from "./tools/proxy.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const packages = path("./node_modules");

export default defineConfig({
  plugins: [react(), compressed()],
  // Readable class names: the server writes those of the header and the first screen of a report.
  css: { modules: { generateScopedName: (name, file) => `${basename(file, ".module.css")}-${name}` } },
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
        // Code that most pages share is in two files: the bundler's own chunks were up to 40 requests of a kilobyte.
        codeSplitting: {
          groups: [
            // Code that each page needs, and modules of pages that routes import. It is first, because a group takes the dependencies of its modules too.
            {
              name: "shared",
              test: /\/src\/(?:(?:app|api|lib|parts|styles\/(?!mantine)|figures\/(?:marks|useWidth))\b|pages\/.*\/(?:route|search|audit|labels|timeWindow|BisectLink)\b)|node_modules\/(?:@tanstack|@mantine\/(?:hooks|core\/esm\/core)|react|scheduler|openapi-fetch)|vite\/preload-helper/,
            },
            // Form controls, which half of the pages have; a report and lists have none.
            {
              name: "kit",
              test: /\/src\/kit\/|@floating-ui|@mantine\/core\/.*\/components/,
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
    hookTimeout: 120_000,
  },
});

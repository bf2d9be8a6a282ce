// Print the gzipped size of each page's first load, from the build manifest. Fail if a page's JavaScript is over budget.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUDGET_KB = 250;
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));

/** Return a chunk and all of its static imports. */
function staticImports(key, seen = new Set()) {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) staticImports(next, seen);
  return seen;
}

const kb = file => gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length / 1000;
const pages = Object.keys(manifest).filter(key => /^src\/pages\/[^/]+\/[^/]*[pP]age\.tsx$/.test(key));
const rows = ["index.html", ...pages].map(page => {
  const keys = new Set([...staticImports("index.html"), ...staticImports(page)]);
  const js = [...keys].map(key => manifest[key].file).filter(file => file.endsWith(".js"));
  const css = new Set([...keys].flatMap(key => manifest[key].css ?? []));
  const sum = files => [...files].reduce((total, file) => total + kb(file), 0);
  return { page, js: sum(new Set(js)), css: sum(css) };
});
for (const { page, js, css } of rows) {
  console.log(
    `${page.padEnd(44)} js ${js.toFixed(1).padStart(6)} kB  css ${css.toFixed(1).padStart(5)} kB  (gzip)`,
  );
}
const over = rows.filter(row => row.js > BUDGET_KB);
if (over.length > 0) {
  console.error(
    `more than ${BUDGET_KB} kB of JavaScript on first load: ${over.map(row => row.page).join(", ")}`,
  );
  process.exit(1);
}

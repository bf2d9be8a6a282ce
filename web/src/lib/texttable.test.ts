import { expect, test } from "vitest";
import { plain, textTable } from "./texttable";

test("columns line up, numbers to the right, nothing behind the last word", () => {
  const table = textTable(
    ["scenario", "baseline", "verdict"],
    [
      ["fsync", "34", "improvement"],
      ["fsync-many", "1159.40", "same"],
    ],
    [false, true, false],
  );
  expect(table).toBe(
    [
      "scenario    baseline  verdict",
      "---------------------------------",
      "fsync             34  improvement",
      "fsync-many   1159.40  same",
    ].join("\n"),
  );
});

test("signs become ASCII", () => {
  expect(plain("\u22121.2 ±0.3")).toBe("-1.2 +-0.3");
});

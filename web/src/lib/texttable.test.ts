import { expect, test } from "vitest";
import { textTable, toAscii } from "./texttable";

test("columns are aligned, numbers to the right, without trailing spaces", () => {
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

test("typographic signs become ASCII", () => {
  expect(toAscii("\u22121.2 ±0.3")).toBe("-1.2 +-0.3");
});

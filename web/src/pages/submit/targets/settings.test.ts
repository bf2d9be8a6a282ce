import { expect, test } from "vitest";
import { combinations } from "./settings";

test("knobs are combined into a table of canonical settings", () => {
  const { rows, columns, cell } = combinations([
    { name: "strict", values: ["0", "1"], default: null },
    { name: "scope", values: ["cache", "numa"], default: null },
    { name: "Boost", values: ["on"], default: null },
  ]);
  expect(rows).toEqual(["0", "1"]);
  expect(columns).toEqual(["scope=cache,Boost=on", "scope=numa,Boost=on"]);
  // Code points, as Python sorts: capitals first.
  expect(cell("1", columns[1] as string)).toBe("Boost=on,scope=numa,strict=1");
});

test("one knob gives a single column", () => {
  const { columns, cell } = combinations([{ name: "scope", values: ["cache"], default: null }]);
  expect(columns).toEqual([""]);
  expect(cell("cache", "")).toBe("scope=cache");
});

test("knobs at their default are omitted from a setting", () => {
  const scope = { name: "scope", values: ["cache"], default: null };
  const local = { name: "local", values: ["0", "1"], default: "0" };
  const asColumn = combinations([scope, local]);
  expect(asColumn.columns).toEqual(["", "local=1"]);
  expect(asColumn.columns.map(column => asColumn.cell("cache", column))).toEqual([
    "scope=cache",
    "local=1,scope=cache",
  ]);
  const asRow = combinations([local, scope]);
  expect(asRow.rows.map(row => asRow.cell(row, "scope=cache"))).toEqual([
    "scope=cache",
    "local=1,scope=cache",
  ]);
});

import { expect, test } from "vitest";
import { combinations } from "./settings";

test("knobs make a table of canonical settings", () => {
  const { rows, columns, cell } = combinations([
    { name: "strict", values: ["0", "1"] },
    { name: "scope", values: ["cache", "numa"] },
    { name: "Boost", values: ["on"] },
  ]);
  expect(rows).toEqual(["0", "1"]);
  expect(columns).toEqual(["scope=cache,Boost=on", "scope=numa,Boost=on"]);
  // Code points, as Python sorts: capitals first.
  expect(cell("1", columns[1] as string)).toBe("Boost=on,scope=numa,strict=1");
});

test("one knob is a list", () => {
  const { columns, cell } = combinations([{ name: "scope", values: ["cache"] }]);
  expect(columns).toEqual([""]);
  expect(cell("cache", "")).toBe("scope=cache");
});

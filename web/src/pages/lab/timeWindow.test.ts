import { expect, test } from "vitest";
import { earlier, later, timestampParam } from "./timeWindow";

test("timestamps have minute precision; invalid values read as now", () => {
  expect(timestampParam().read("2026-11-21T18:00Z")).toBe("2026-11-21T18:00Z");
  expect(timestampParam().read("2026-13-41T18:00Z")).toBe("");
  expect(timestampParam().read("yesterday")).toBe("");
  expect(timestampParam().read(undefined)).toBe("");
});

test("adjacent windows leave no gap", () => {
  const until = new Date("2026-11-21T18:00Z");
  expect(earlier(until, "6h")).toBe("2026-11-21T12:00Z");
  expect(later(new Date("2026-11-21T12:00Z"), "6h", new Date("2026-11-22T00:00Z"))).toBe("2026-11-21T18:00Z");
});

test("a window that reaches the present follows the clock", () => {
  expect(later(new Date("2026-11-21T12:00Z"), "1d", new Date("2026-11-21T20:00Z"))).toBe("");
});

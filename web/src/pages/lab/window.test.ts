import { expect, test } from "vitest";
import { earlier, later, moment } from "./window";

test("a moment is kept to the minute, and what is none reads as now", () => {
  expect(moment().read("2026-11-21T18:00Z")).toBe("2026-11-21T18:00Z");
  expect(moment().read("2026-13-41T18:00Z")).toBe("");
  expect(moment().read("yesterday")).toBe("");
  expect(moment().read(undefined)).toBe("");
});

test("windows follow each other without a gap", () => {
  const until = new Date("2026-11-21T18:00Z");
  expect(earlier(until, "6h")).toBe("2026-11-21T12:00Z");
  expect(later(new Date("2026-11-21T12:00Z"), "6h", new Date("2026-11-22T00:00Z"))).toBe("2026-11-21T18:00Z");
});

test("the window that reaches the present follows the clock again", () => {
  expect(later(new Date("2026-11-21T12:00Z"), "1d", new Date("2026-11-21T20:00Z"))).toBe("");
});

import { expect, test } from "vitest";
import { absolute, date, duration, msUntilTextChange, relative, roughDuration } from "./time";

const now = new Date(2026, 10, 21, 18, 0, 0);
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000);

test.each([
  [0, "0 s"],
  [89.4, "89 s"],
  [90, "2 min"],
  [5399, "90 min"],
  [5400, "2 h"],
  [129_600, "2 d"],
])("%d s are formatted as %s", (seconds, text) => {
  expect(roughDuration(seconds)).toBe(text);
});

test("past, future and distant times are formatted", () => {
  expect(relative(ago(2), now)).toBe("just now");
  expect(relative(ago(400), now)).toBe("7 min ago");
  expect(relative(ago(-7200), now)).toBe("in 2 h");
  expect(relative(ago(86_400 * 60), now)).toBe("2026-09-22");
});

test("the absolute time names its zone", () => {
  expect(absolute(now)).toMatch(/^2026-11-21 18:00:00 (UTC|[+-]\d\d:\d\d)$/);
  expect(date(now)).toBe("2026-11-21");
});

test.each([
  [7, "0:07"],
  [750, "12:30"],
  [3723, "1:02:03"],
  [59.7, "1:00"],
])("a duration of %d s is formatted as %s", (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

test("the update interval grows with the distance in time", () => {
  expect(msUntilTextChange(ago(10), now)).toBe(1000);
  expect(msUntilTextChange(ago(600), now)).toBe(15_000);
  expect(msUntilTextChange(ago(86_400), now)).toBe(300_000);
});

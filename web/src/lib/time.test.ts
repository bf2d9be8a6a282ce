import { expect, test } from "vitest";
import { absolute, date, duration, nextChange, relative, rough } from "./time";

const now = new Date(2026, 10, 21, 18, 0, 0);
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000);

test.each([
  [0, "0 s"],
  [89.4, "89 s"],
  [90, "2 min"],
  [5399, "90 min"],
  [5400, "2 h"],
  [129_600, "2 d"],
])("%d seconds are roughly %s", (seconds, text) => {
  expect(rough(seconds)).toBe(text);
});

test("the past is ago, the future in, the far the date", () => {
  expect(relative(ago(2), now)).toBe("just now");
  expect(relative(ago(400), now)).toBe("7 min ago");
  expect(relative(ago(-7200), now)).toBe("in 2 h");
  expect(relative(ago(86_400 * 60), now)).toBe("2026-09-22");
});

test("the absolute time sorts and names its zone", () => {
  expect(absolute(now)).toMatch(/^2026-11-21 18:00:00 (UTC|[+-]\d\d:\d\d)$/);
  expect(date(now)).toBe("2026-11-21");
});

test.each([
  [7, "0:07"],
  [750, "12:30"],
  [3723, "1:02:03"],
  [59.7, "1:00"],
])("%d s take %s", (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

test("a clock ticks as often as its text can change", () => {
  expect(nextChange(ago(10), now)).toBe(1000);
  expect(nextChange(ago(600), now)).toBe(15_000);
  expect(nextChange(ago(86_400), now)).toBe(300_000);
});

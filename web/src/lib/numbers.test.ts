import { expect, test } from "vitest";
import {
  asPublished,
  bytes,
  change,
  count,
  effect,
  fixed,
  grouped,
  interval,
  intervalOf,
  metricName,
  number,
  places,
  pValue,
  signed,
  spread,
  withUnit,
} from "./numbers";

test.each([
  [[34, 4], 0],
  [[25.82, 1.07], 2],
  [[6.51], 2],
  [[0.0312], 5],
  [[123_456.7], 0],
  [[], 0],
])("a column of %j has %i places", (values, expected) => {
  expect(places(values)).toBe(expected);
});

test.each([
  ["wait_p99_us", "wait_p99"],
  ["time_s", "time"],
  ["items_per_s", "items_per_s"],
  ["reads", "reads"],
])("%s is named %s", (metric, name) => expect(metricName(metric)).toBe(name));

test("mean and deviation have the same decimals", () => {
  expect(spread({ mean: 1159.4, stddev: 1.338 })).toBe("1159.40 ±1.34");
  expect(spread({ mean: 48_211.3, stddev: 310.2 })).toBe("48211 ±310");
  expect(spread({ mean: 34, stddev: null })).toBe("34");
});

test.each([
  [1.2449, "+1.24"],
  [-12.54, "\u221212.5"],
  [0.0123, "+0.012"],
  [0, "0.00"],
  [-2_500_000, "\u22122.50e+06"],
])("a change of %d is formatted as %s", (value, text) => {
  expect(signed(value)).toBe(text);
});

test("an effect is an integer between counts, in points between percentages", () => {
  const counts = { effect: -30, exact: true, scale: "difference", effect_unit: "locks" } as const;
  expect(change(counts)).toBe("\u221230");
  expect(effect(counts)).toBe("\u221230 locks");
  expect(effect({ effect: 62.51, scale: "difference", effect_unit: "points" })).toBe("+62.5 points");
  expect(effect({ effect: 1.24, scale: "ratio", effect_unit: "%" })).toBe("+1.24 %");
  expect(effect({ effect: null, scale: "ratio", effect_unit: "%" })).toBe("");
});

test("an interval has both bounds with their signs", () => {
  expect(interval([-0.5, 1.52])).toBe("[\u22120.50, +1.52]");
  expect(interval(null)).toBe("");
});

test.each([
  [0.00003, "<.0001"],
  [0.0313, ".0313"],
  [1, "1"],
])("p %d is formatted as %s", (p, text) => {
  expect(pValue(p)).toBe(text);
});

test("a count has its noun in singular or plural and is grouped from five digits", () => {
  expect(count(1, "block")).toBe("1 block");
  expect(count(0, "block")).toBe("0 blocks");
  expect(count(2, "boot with findings", "boots with findings")).toBe("2 boots with findings");
  expect(grouped(9999)).toBe("9999");
  expect(grouped(1_234_567)).toBe("1\u202f234\u202f567");
});

test("sizes have binary prefixes and never read 1024", () => {
  expect(bytes(812)).toBe("812 B");
  expect(bytes(1_468_006)).toBe("1.4 MiB");
  expect(bytes(1_048_575)).toBe("1.0 MiB");
});

test("a value rounded to zero has no sign", () => {
  expect(number(-0.001, 1)).toBe("0.0");
  expect(number(-2.345, 1)).toBe("\u22122.3");
});

test.each([
  [0.03125, 4, "0.0312"],
  [0.09375, 4, "0.0938"],
  [2.5, 0, "2"],
  [3.5, 0, "4"],
  [-2.5, 0, "-2"],
  [0.125, 2, "0.12"],
  [0.15, 1, "0.1"],
  [1.005, 2, "1.00"],
  [1e11 + 0.5, 0, "100000000000"],
])("%f with %i decimals is %s, as in Python", (value, decimals, text) => {
  expect(fixed(value, decimals)).toBe(text);
});

test.each([
  [1, "locks", "1 lock"],
  [1, "switches", "1 switch"],
  [0.5, "points", "0.5 points"],
  [1, "us", "1 us"],
  [1, "MiB/s", "1 MiB/s"],
  [5, "%", "5 %"],
])("%f %s is %s", (value, unit, text) => expect(withUnit(value, unit)).toBe(text));

test("a published change keeps all of its digits", () => {
  expect([-0.12, 1186.32, 0.8, 0].map(asPublished)).toEqual(["\u22120.12", "+1186.32", "+0.8", "0"]);
});

test("equal counts under each seed are exact and need no interval", () => {
  expect(intervalOf({ evidence: "instrumented", effect: 0, ci95: null })).toBe("exact");
  expect(intervalOf({ evidence: "instrumented", effect: 1, ci95: [0.5, 1.5] })).toBe("[+0.50, +1.50]");
  expect(intervalOf({ evidence: "performance", effect: 0, ci95: null })).toBe("");
  expect(intervalOf(undefined)).toBe("");
});

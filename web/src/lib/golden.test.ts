/** Formatting of numbers and verdicts against the table that the Python tests use, too. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { NotMeasuredCause, Scale, Verdict } from "@/api/types";
import { effect, effectUnitOf, interval, MINUS, number, places, pValue, signed, spread } from "./numbers";
import { NOT_MEASURED, VERDICT_ORDER, VERDICTS } from "./words";

interface Golden {
  effect_unit: { scale: Scale; unit: string; text: string }[];
  number: { value: number; decimals: number | null; text: string }[];
  decimal_places: { values: number[]; places: number }[];
  mean_and_deviation: { mean: number; stddev: number | null; text: string }[];
  signed: { value: number; text: string }[];
  effect: { effect: number | null; exact: boolean; scale: Scale; unit: string; text: string }[];
  interval: { ci95: [number, number] | null; text: string }[];
  p_value: { p: number; text: string }[];
  not_measured: { cause: NotMeasuredCause; text: string }[];
  verdicts: { verdict: Verdict; sign: string }[];
}

const golden = JSON.parse(readFileSync("../contracts/tests/golden/numbers.json", "utf8")) as Golden;

/** Replace the table's hyphens with minus signs, as pages show them; exponents keep the hyphen. */
const onPage = (text: string) => text.replace(/(?<![\de])-(?=\d)/g, MINUS);

test.each(golden.effect_unit)("the unit of an effect: scale $scale, unit $unit", ({ text, ...metric }) => {
  expect(effectUnitOf(metric)).toBe(text);
});

test.each(golden.number)("number: $value", ({ value, decimals, text }) => {
  expect(decimals === null ? number(value) : number(value, decimals)).toBe(onPage(text));
});

test.each(golden.decimal_places)("decimal places: $values", ({ values, places: decimals }) => {
  expect(places(values)).toBe(decimals);
});

test.each(golden.mean_and_deviation)("mean and deviation: $mean, $stddev", ({ text, ...arm }) => {
  expect(spread(arm)).toBe(onPage(text));
});

test.each(golden.signed)("signed: $value", ({ value, text }) => {
  expect(signed(value)).toBe(onPage(text));
});

test.each(golden.effect)("effect: $effect, exact $exact, $scale, $unit", ({ unit, text, ...of }) => {
  expect(effect({ ...of, effect_unit: effectUnitOf({ ...of, unit }) })).toBe(onPage(text));
});

test.each(golden.interval)("interval: $ci95", ({ ci95, text }) => {
  expect(interval(ci95)).toBe(onPage(text));
});

test.each(golden.p_value)("p-value: $p", ({ p, text }) => {
  expect(pValue(p)).toBe(text);
});

test("causes of a missing figure have the labels of the table", () => {
  expect(Object.entries(NOT_MEASURED)).toEqual(golden.not_measured.map(each => [each.cause, each.text]));
});

test("verdicts have the signs and the order of the table", () => {
  expect(VERDICT_ORDER).toEqual(golden.verdicts.map(each => each.verdict));
  expect(VERDICT_ORDER.map(verdict => VERDICTS[verdict].sign)).toEqual(
    golden.verdicts.map(each => each.sign),
  );
});

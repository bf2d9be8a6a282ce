import { expect, test } from "vitest";
import type { Comparison, FigurePair } from "@/api/types";
import { makeReport } from "@/testing/report";
import { CHANGE_WORDS, effectText, filterPairs, pairKey } from "./pairs";
import { CHANGES, compareSearch } from "./search";

const comparisons = makeReport().targets.flatMap(target => target.comparisons);
const pairs: FigurePair[] = comparisons.map((of, at) => ({
  plan: of.plan,
  device_type: of.device_type,
  scenario: of.scenario,
  setting: of.setting,
  question: of.question,
  kernel: of.kernel,
  metric: of.metric,
  first: at === 0 ? null : of,
  second: of,
  change: at === 0 ? "only_second" : of.evidence === "none" ? "none" : "same",
  effect_change: of.effect === null ? null : 0,
  effect_change_unit: of.effect_unit,
  intervals_overlap: of.effect === null ? null : true,
}));
const search = compareSearch.defaults;

test("pair keys and change labels are unique", () => {
  expect(new Set(pairs.map(pairKey)).size).toBe(pairs.length);
  expect(new Set(CHANGES.map(change => CHANGE_WORDS[change].word)).size).toBe(CHANGES.length);
});

test("filters apply to pairs with and without a missing side", () => {
  expect(filterPairs(pairs, search)).toHaveLength(pairs.length);
  expect(filterPairs(pairs, { ...search, change: ["only_second"] }).map(of => of.first)).toEqual([null]);
  expect(
    filterPairs(pairs, { ...search, topology: "tiny", metric: "busy" }).every(of => of.change === "none"),
  ).toBe(true);
});

test("effects are formatted as in the report; missing effects are empty", () => {
  const [of] = comparisons as [Comparison];
  expect(effectText(of)).toBe("+1.50 points [+1.25, +1.75]");
  expect(effectText({ ...of, exact: true, ci95: null, effect_unit: "locks", effect: -30 })).toBe(
    "\u221230 locks exact",
  );
  expect(effectText({ ...of, effect: null, ci95: null })).toBe("");
  expect(effectText(null)).toBe("");
});

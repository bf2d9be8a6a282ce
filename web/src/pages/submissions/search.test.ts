import { expect, test } from "vitest";
import { searchParams } from "@/lib/search";
import { filtersOf, LIST_PARAMS, toFilters } from "./search";

const { defaults } = searchParams(LIST_PARAMS);

test("an empty search requests the newest page", () => {
  expect(toFilters(defaults, 50)).toEqual({ limit: 50, sort: "newest", one_per_series: true });
});

test.each([
  ["unfinished", { active: true }],
  ["running", { state: "running" }],
  ["failed", { outcome: "failed" }],
] as const)("state=%s maps to the API parameters %j", (state, parameters) => {
  expect(toFilters({ ...defaults, state }, 50)).toEqual({
    limit: 50,
    sort: "newest",
    one_per_series: true,
    ...parameters,
  });
});

test("dates cover whole days in the user's time zone", () => {
  const { since, until } = toFilters({ ...defaults, since: "2026-10-25", until: "2026-10-25" }, 50);
  expect(since).toBe(new Date(2026, 9, 25).toISOString());
  expect(until).toBe(new Date(2026, 9, 26).toISOString());
});

test("sort order and cursor are not filters", () => {
  expect(filtersOf({ ...defaults, sort: "title", cursor: "x" })).toEqual({});
  expect(filtersOf({ ...defaults, q: "wq", plan: "k" })).toEqual({ q: "wq", plan: "k" });
});

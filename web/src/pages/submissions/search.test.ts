import { expect, test } from "vitest";
import { searchParams } from "@/lib/search";
import { asked, filtersOf, LIST } from "./search";

const { defaults } = searchParams(LIST);

test("an address that says nothing asks for the newest page", () => {
  expect(asked(defaults, 50)).toEqual({ limit: 50, sort: "newest" });
});

test.each([
  ["unfinished", { active: true }],
  ["running", { state: "running" }],
  ["failed", { outcome: "failed" }],
] as const)("state=%s is one choice and the API's %j", (state, parameters) => {
  expect(asked({ ...defaults, state }, 50)).toEqual({ limit: 50, sort: "newest", ...parameters });
});

test("days are the reader's and whole", () => {
  const { since, until } = asked({ ...defaults, since: "2026-10-25", until: "2026-10-25" }, 50);
  expect(since).toBe(new Date(2026, 9, 25).toISOString());
  expect(until).toBe(new Date(2026, 9, 26).toISOString());
});

test("order and page do not narrow", () => {
  expect(filtersOf({ ...defaults, sort: "title", cursor: "x" })).toEqual({});
  expect(filtersOf({ ...defaults, q: "wq", series: "k" })).toEqual({ q: "wq", series: "k" });
});

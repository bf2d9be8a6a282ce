/** Search parameters of the comparison page. */
import { oneOf, searchParams, someOf, text, whole } from "@/lib/search";

export const CHANGES = ["worse", "better", "other", "same", "only_first", "only_second", "none"] as const;

export const compareSearch = searchParams({
  first: whole({ min: 1 }),
  second: whole({ min: 1 }),
  topology: text(100),
  scenario: text(100),
  metric: text(100),
  role: oneOf(["primary", "secondary", "explanatory"]),
  change: someOf(CHANGES),
  /** Column ID; `-` in front sorts in descending order. */
  sort: text(40),
});

export type CompareSearch = typeof compareSearch.defaults;

/** Search parameters of the comparison of any two sides: their selectors. */
export const anySearch = searchParams({ left: text(500), right: text(500) });

/** Search parameters of the comparison page. */
import { oneOf, searchParams, someOf, text } from "@/lib/search";

export const CHANGES = ["worse", "better", "other", "same", "only_first", "only_second", "none"] as const;

export const compareSearch = searchParams({
  /** Submissions by their numbers, or selectors of kernels and heads. */
  left: text(500),
  right: text(500),
  topology: text(100),
  scenario: text(100),
  metric: text(100),
  role: oneOf(["primary", "secondary", "explanatory"]),
  change: someOf(CHANGES),
  /** Column ID; `-` in front sorts in descending order. */
  sort: text(40),
});

export type CompareSearch = typeof compareSearch.defaults;

/** Return the numbers of both submissions; null unless both sides are a different one. */
export function submissionsOf(left: string, right: string): [number, number] | null {
  const whole = /^[1-9][0-9]{0,8}$/;
  return whole.test(left) && whole.test(right) && left !== right ? [Number(left), Number(right)] : null;
}

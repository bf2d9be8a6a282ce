/** Search parameters of the pages about watched lists and trees, and their translation to API filters. */
import type { DecisionFilters, HeadFilters } from "@/api/intakeQueries";
import { flag, oneOf, text, type Values, whole } from "@/lib/search";
import { DECISION_STATES, HEAD_STATES, REASONS } from "./labels";

/** Days of a preview, as the API bounds them. */
export const DAYS = 7;
export const DAYS_MAX = 30;

export const FORM_PARAMS = { form: flag() };

export const RULE_PARAMS = {
  state: oneOf(DECISION_STATES),
  reason: oneOf(REASONS),
  /** Days of the preview that is shown; null: none. */
  days: whole({ min: 1, max: DAYS_MAX }),
  form: flag(),
  cursor: text(100),
};

export const WATCHED_TREE_PARAMS = {
  state: oneOf(HEAD_STATES),
  ref: text(),
  form: flag(),
  cursor: text(100),
};

export type RuleSearch = Values<typeof RULE_PARAMS>;
export type WatchedTreeSearch = Values<typeof WATCHED_TREE_PARAMS>;

/** Return the API's filters of a rule's decisions; those that are not set are left out. */
export function toDecisionFilters(
  { state, reason, cursor }: Pick<RuleSearch, "state" | "reason" | "cursor">,
  limit: number,
): DecisionFilters {
  return { limit, ...(state && { state }), ...(reason && { reason }), ...(cursor && { cursor }) };
}

/** Return the API's filters of a tree's heads; those that are not set are left out. */
export function toHeadFilters(
  { state, ref, cursor }: Pick<WatchedTreeSearch, "state" | "ref" | "cursor">,
  limit: number,
): HeadFilters {
  return { limit, ...(state && { state }), ...(ref && { ref }), ...(cursor && { cursor }) };
}

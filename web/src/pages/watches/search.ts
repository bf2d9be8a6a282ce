/** Search parameters of the pages about watches, and their translation to API filters. */
import type { DecisionFilters, HeadFilters } from "@/api/watchQueries";
import { flag, oneOf, text, type Values, whole } from "@/lib/search";
import { DECISION_STATES, HEAD_STATES, REASONS } from "./labels";

/** Days of a preview, as the API bounds them. */
export const DAYS = 7;
export const DAYS_MAX = 30;

export const FORM_PARAMS = { form: flag() };

export const WATCH_PARAMS = {
  /** State of the decisions, or of the heads. */
  decision: oneOf(DECISION_STATES),
  head: oneOf(HEAD_STATES),
  reason: oneOf(REASONS),
  ref: text(),
  /** Days of the preview that is shown; null: none. */
  days: whole({ min: 1, max: DAYS_MAX }),
  form: flag(),
  cursor: text(100),
};

export type WatchSearch = Values<typeof WATCH_PARAMS>;

/** Return the API's filters of the decisions of a list's watch; those that are not set are left out. */
export function toDecisionFilters(
  { decision, reason, cursor }: Pick<WatchSearch, "decision" | "reason" | "cursor">,
  limit: number,
): DecisionFilters {
  return {
    limit,
    ...(decision && { state: decision }),
    ...(reason && { reason }),
    ...(cursor && { cursor }),
  };
}

/** Return the API's filters of a tree's heads; those that are not set are left out. */
export function toHeadFilters(
  { head, ref, cursor }: Pick<WatchSearch, "head" | "ref" | "cursor">,
  limit: number,
): HeadFilters {
  return { limit, ...(head && { state: head }), ...(ref && { ref }), ...(cursor && { cursor }) };
}

/** Search parameters of the submissions list and their translation to API filters. */
import type { SubmissionFilters } from "@/api/queries";
import type { Verdict } from "@/api/types";
import { day, oneOf, text, type Values } from "@/lib/search";
import { dayAfter, startOfDay } from "@/lib/time";

/** States and outcomes share one field in the filter bar but are two API parameters. */
const OUTCOMES = ["passed", "failed", "canceled"] as const;
const STATES = ["applying", "building", "running", "comparing"] as const;
export const STATE_CHOICES = ["unfinished", ...STATES, ...OUTCOMES] as const;

export const SORTS = ["newest", "oldest", "ended", "priority", "title", "owner", "tree"] as const;

const VERDICT_CHOICES: readonly Verdict[] = [
  "improvement",
  "regression",
  "equivalent",
  "below_threshold",
  "inconclusive",
  "failed",
  "unsupported",
  "withheld",
  "not_exercised",
  "no_evidence",
];

export const LIST_PARAMS = {
  q: text(),
  state: oneOf(STATE_CHOICES),
  verdict: oneOf(VERDICT_CHOICES),
  plan: text(100),
  device_type: text(100),
  tree: text(100),
  author: text(),
  owner: text(100),
  since: day(),
  until: day(),
  sort: oneOf(SORTS, "newest"),
  cursor: text(100),
};

export type ListSearch = Values<typeof LIST_PARAMS>;

/** Return the active filters, without sort order and cursor. */
export function filtersOf(search: ListSearch): Partial<ListSearch> {
  const { sort: _sort, cursor: _cursor, ...filters } = search;
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ""));
}

/**
 * Translate search parameters to API filters. Dates are in local time: from midnight of the first day to midnight
 * after the last.
 */
export function toFilters(search: ListSearch, limit: number): SubmissionFilters {
  const { state, since, until, sort, cursor, ...unchanged } = search;
  const filters: SubmissionFilters = { limit, sort, one_per_series: true };
  for (const [name, value] of Object.entries(unchanged))
    if (value !== "") Object.assign(filters, { [name]: value });
  if (state === "unfinished") filters.active = true;
  else if (isOneOf(OUTCOMES, state)) filters.outcome = state;
  else if (isOneOf(STATES, state)) filters.state = state;
  if (since) filters.since = startOfDay(since).toISOString();
  if (until) filters.until = dayAfter(until).toISOString();
  if (cursor) filters.cursor = cursor;
  return filters;
}

function isOneOf<T extends string>(known: readonly T[], value: string): value is T {
  return (known as readonly string[]).includes(value);
}

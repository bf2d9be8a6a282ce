/** What the list can be asked for, in the page's address and in the API's terms. */
import type { SubmissionFilters } from "@/api/queries";
import type { Verdict } from "@/api/types";
import { day, oneOf, text, type Values } from "@/lib/search";

/** Where it is or how it ended: one choice for a reader, two parameters of the API. */
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
  "no_evidence",
];

export const LIST = {
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
  /** All versions of one series. */
  series: text(500),
  sort: oneOf(SORTS, "newest"),
  cursor: text(100),
};

export type ListSearch = Values<typeof LIST>;

/** What narrows the list: not its order, not its page. */
export function filtersOf(search: ListSearch): Partial<ListSearch> {
  const { sort: _sort, cursor: _cursor, ...filters } = search;
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ""));
}

/** The list that an address asks for. Days are the reader's: from midnight of the first to midnight after the last. */
export function asked(search: ListSearch, limit: number): SubmissionFilters {
  const { state, series, since, until, sort, cursor, ...same } = search;
  const given: SubmissionFilters = { limit, sort };
  for (const [name, value] of Object.entries(same)) if (value !== "") Object.assign(given, { [name]: value });
  if (state === "unfinished") given.active = true;
  else if (isOneOf(OUTCOMES, state)) given.outcome = state;
  else if (isOneOf(STATES, state)) given.state = state;
  if (series) given.series_key = series;
  if (since) given.since = new Date(`${since}T00:00:00`).toISOString();
  if (until) given.until = dayAfter(until).toISOString();
  if (cursor) given.cursor = cursor;
  return given;
}

/** Midnight after `day`, also where the clocks change in between. */
function dayAfter(day: string): Date {
  const midnight = new Date(`${day}T00:00:00`);
  midnight.setDate(midnight.getDate() + 1);
  return midnight;
}

function isOneOf<T extends string>(known: readonly T[], value: string): value is T {
  return (known as readonly string[]).includes(value);
}

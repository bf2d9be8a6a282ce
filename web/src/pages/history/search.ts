/** Search parameters of the history pages, and their translation to API filters. */
import type { LineFilters, ShiftFilters } from "@/api/historyQueries";
import type { HistoryLine, Role } from "@/api/types";
import { oneOf, text, type Values, whole } from "@/lib/search";

export const DAYS = ["7", "30", "90"] as const;
/** Explanatory metrics have no line. */
export const ROLES: readonly Role[] = ["primary", "secondary"];

export const HISTORY_PARAMS = {
  days: oneOf(DAYS, "7"),
  tree: text(),
  plan: text(),
  type: text(),
  metric: text(),
  role: oneOf(ROLES),
  cursor: text(100),
};

/** Head ids: the first and the last head shown, and the selected one. Null: all heads, none selected. */
export const VIEW_PARAMS = {
  from: whole({ min: 1 }),
  to: whole({ min: 1 }),
  at: whole({ min: 1 }),
};

export type HistorySearch = Values<typeof HISTORY_PARAMS>;

/** Return the API's filters of lines; those that are not set are left out. */
export function toLineFilters(search: HistorySearch, limit: number): LineFilters {
  const { tree, plan, type, metric, role, cursor } = search;
  return {
    limit,
    ...(tree && { tree }),
    ...(plan && { plan }),
    ...(type && { device_type: type }),
    ...(metric && { metric }),
    ...(role && { role }),
    ...(cursor && { cursor }),
  };
}

const HOUR_MS = 3_600_000;

/** Return the API's filters of shifts, opened since a full hour, so that the request is the same for an hour. */
export function toShiftFilters(search: HistorySearch, now: Date, limit: number): ShiftFilters {
  const { days, tree, plan, type } = search;
  const hour = Math.floor(now.getTime() / HOUR_MS) * HOUR_MS;
  return {
    limit,
    since: new Date(hour - Number(days) * 24 * HOUR_MS).toISOString(),
    ...(tree && { tree }),
    ...(plan && { plan }),
    ...(type && { device_type: type }),
  };
}

/** Return true if a shift's line matches the filters that the API has not for shifts. */
export function matchesLine(
  { metric, role }: HistorySearch,
  line: Pick<HistoryLine, "metric" | "role">,
): boolean {
  return (metric === "" || line.metric === metric) && (role === "" || line.role === role);
}

/** Return true if any filter is set. */
export function isNarrowed({ tree, plan, type, metric, role }: HistorySearch): boolean {
  return [tree, plan, type, metric, role].some(Boolean);
}

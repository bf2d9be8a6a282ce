/** Query options for watched lists and watched trees, as queries.ts has them for everything else. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { paths } from "./gen/schema";
import type { ListRule } from "./types";

/** The rules by which series of mailing lists are measured. */
export const rulesQuery = queryOptions({
  queryKey: ["rules"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/rules", { signal })),
});

export const ruleQuery = (name: string) =>
  queryOptions({
    queryKey: ["rules", name],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/rules/{name}", { params: { path: { name } }, signal })),
  });

export type DecisionFilters = NonNullable<
  paths["/api/v1/rules/{name}/decisions"]["get"]["parameters"]["query"]
>;

/** What a rule decided on each series, newest first. */
export const decisionsQuery = (name: string, filters: DecisionFilters) =>
  queryOptions({
    queryKey: ["rules", name, "decisions", filters],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/rules/{name}/decisions", { params: { path: { name }, query: filters }, signal }),
      ),
    placeholderData: keepPreviousData,
  });

/**
 * What a rule as it is would have taken in the last days, as read by a worker. The key has what the rule takes, so that
 * switching it on does not read the list again, and is not one of those that are invalidated then.
 */
export const rulePreviewQuery = ({ enabled: _, ...rule }: ListRule, days: number) =>
  queryOptions({
    queryKey: ["rule-preview", rule, days],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/rules/{name}/preview", {
          params: { path: { name: rule.name }, query: { days, wait_s: 3 } },
          signal,
        }),
      ),
    // Long polling: the server answers when the worker has, or after some seconds with its progress.
    refetchInterval: ({ state }) => (state.data && state.data.state !== "finished" ? 100 : false),
    staleTime: 5 * 60_000,
    refetchOnWindowFocus: false,
  });

export const watchedTreesQuery = queryOptions({
  queryKey: ["watched-trees"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/watched-trees", { signal })),
});

export const watchedTreeQuery = (name: string) =>
  queryOptions({
    queryKey: ["watched-trees", name],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/watched-trees/{name}", { params: { path: { name } }, signal })),
  });

export type HeadFilters = NonNullable<
  paths["/api/v1/watched-trees/{name}/heads"]["get"]["parameters"]["query"]
>;

/** The heads that were seen of a watched tree, newest first. */
export const headsQuery = (name: string, filters: HeadFilters) =>
  queryOptions({
    queryKey: ["watched-trees", name, "heads", filters],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/watched-trees/{name}/heads", {
          params: { path: { name }, query: filters },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });

/** Query options for watches, as queries.ts has them for everything else. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { paths } from "./gen/schema";
import { SHOWN_IN_PLACE } from "./queries";
import type { ListWatch } from "./types";

export const watchesQuery = queryOptions({
  queryKey: ["watches"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/watches", { signal })),
});

/** The watches of trees, for pages that follow their heads. */
export const treeWatchesQuery = queryOptions({
  ...watchesQuery,
  staleTime: 60_000,
  select: watches => watches.filter(each => each.repository !== null),
});

export const watchQuery = (name: string) =>
  queryOptions({
    queryKey: ["watches", name],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/watches/{name}", { params: { path: { name } }, signal })),
  });

export type DecisionFilters = NonNullable<
  paths["/api/v1/watches/{name}/decisions"]["get"]["parameters"]["query"]
>;

/** What a watch of a list decided on each series, newest first. */
export const decisionsQuery = (name: string, filters: DecisionFilters) =>
  queryOptions({
    queryKey: ["watches", name, "decisions", filters],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/watches/{name}/decisions", { params: { path: { name }, query: filters }, signal }),
      ),
    placeholderData: keepPreviousData,
  });

/**
 * What a watch as it is would have taken in the last days, as read by a worker. The key has what the watch takes, so
 * that enabling it does not read the list again, and is not one of those that are invalidated then.
 */
export const previewQuery = ({ enabled: _, ...spec }: ListWatch, days: number) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["watch-preview", spec, days],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/watches/{name}/preview", {
          params: { path: { name: spec.name }, query: { days, wait_s: 3 } },
          signal,
        }),
      ),
    // Long polling: the server answers when the worker has, or after some seconds with its progress.
    refetchInterval: ({ state }) => (state.data && state.data.state !== "finished" ? 100 : false),
    staleTime: 5 * 60_000,
    refetchOnWindowFocus: false,
  });

export type HeadFilters = NonNullable<paths["/api/v1/watches/{name}/heads"]["get"]["parameters"]["query"]>;

/** The heads that were seen of a watched tree, newest first. */
export const headsQuery = (name: string, filters: HeadFilters) =>
  queryOptions({
    queryKey: ["watches", name, "heads", filters],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/watches/{name}/heads", { params: { path: { name }, query: filters }, signal })),
    placeholderData: keepPreviousData,
  });

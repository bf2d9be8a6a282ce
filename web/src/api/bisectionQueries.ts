/** Query options for bisections, as queries.ts has them for everything else. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { paths } from "./gen/schema";
import type { Bisection, BisectionData } from "./types";

type ListOf<T> = { items: T[]; total: number; next?: string | null };
export type BisectionFilters = NonNullable<paths["/api/v1/bisections"]["get"]["parameters"]["query"]>;

export const bisectionsQuery = (filters: BisectionFilters) =>
  queryOptions({
    queryKey: ["bisections", filters],
    queryFn: ({ signal }) =>
      // openapi-fetch's types turn tuples into arrays, here and below.
      dataOf(api.GET("/api/v1/bisections", { params: { query: filters }, signal })) as Promise<
        ListOf<Bisection>
      >,
    placeholderData: keepPreviousData,
  });

/** A bisection with its commits and steps. */
export const bisectionQuery = (id: number) =>
  queryOptions({
    queryKey: ["bisection", id],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/bisections/{bisection_id}", { params: { path: { bisection_id: id } }, signal }),
      ) as Promise<BisectionData>,
  });

/** Query options for the history of watched trees, as queries.ts has them for everything else. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { paths } from "./gen/schema";
import type { HistoryLine, HistoryLineData, HistoryShift } from "./types";

type ListOf<T> = { items: T[]; total: number; next?: string | null };
export type LineFilters = NonNullable<paths["/api/v1/history/lines"]["get"]["parameters"]["query"]>;

/** The metrics that are followed over the heads of watched trees. */
export const historyLinesQuery = (filters: LineFilters) =>
  queryOptions({
    queryKey: ["history", "lines", filters],
    queryFn: ({ signal }) =>
      // openapi-fetch's types turn tuples into arrays, here and below.
      dataOf(api.GET("/api/v1/history/lines", { params: { query: filters }, signal })) as Promise<
        ListOf<HistoryLine>
      >,
    placeholderData: keepPreviousData,
  });

/** A line with its points, levels and shifts. */
export const historyLineQuery = (id: number) =>
  queryOptions({
    queryKey: ["history", "line", id],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/history/lines/{line_id}", { params: { path: { line_id: id } }, signal }),
      ) as Promise<HistoryLineData>,
    staleTime: 60_000,
  });

export type ShiftFilters = NonNullable<paths["/api/v1/history/shifts"]["get"]["parameters"]["query"]>;

export const historyShiftsQuery = (filters: ShiftFilters) =>
  queryOptions({
    queryKey: ["history", "shifts", filters],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/history/shifts", { params: { query: filters }, signal })) as Promise<
        ListOf<HistoryShift>
      >,
    placeholderData: keepPreviousData,
  });

export const historyShiftQuery = (id: number) =>
  queryOptions({
    queryKey: ["history", "shift", id],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/history/shifts/{shift_id}", { params: { path: { shift_id: id } }, signal }),
      ) as Promise<HistoryShift>,
  });

/**
 * Query options by resource: the only place that names query keys. A page takes `useSuspenseQuery(submissionQuery(id))`
 * and invalidates with the same function's `queryKey`.
 */
import { keepPreviousData, QueryClient, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { paths } from "./gen/schema";
import { ApiError } from "./problem";
import type { Report } from "./types";

/** What changes only when an operator edits a file. */
const RARELY_CHANGES = { staleTime: 5 * 60_000 } as const;

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // A lab's network need not be the internet: what counts is whether the lab answers (connection.ts).
        networkMode: "always",
        staleTime: 10_000,
        refetchOnWindowFocus: true,
        // What the server refused, it refuses again.
        retry: (failures, error) => !(error instanceof ApiError && error.status < 500) && failures < 2,
      },
      mutations: { networkMode: "always", retry: false },
    },
  });
}

export type SubmissionFilters = NonNullable<paths["/api/v1/submissions"]["get"]["parameters"]["query"]>;

export const submissionsQuery = (filters: SubmissionFilters) =>
  queryOptions({
    queryKey: ["submissions", filters],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/submissions", { params: { query: filters }, signal })),
    placeholderData: keepPreviousData,
  });

export const submissionQuery = (id: number) =>
  queryOptions({
    queryKey: ["submission", id],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/submissions/{submission_id}", { params: { path: { submission_id: id } }, signal }),
      ),
  });

/** Only there when the submission is finished; a finished one never changes. */
export const reportQuery = (id: number) =>
  queryOptions({
    queryKey: ["submission", id, "report"],
    queryFn: ({ signal }) =>
      // Without a format it is JSON; the schema's other type is that of the other formats.
      dataOf(
        api.GET("/api/v1/submissions/{submission_id}/report", {
          params: { path: { submission_id: id } },
          signal,
        }),
      ) as Promise<Report>,
  });

/** What the page of a submission draws: its steps, with `event_seq` to follow events from. */
export const stepsQuery = (id: number) =>
  queryOptions({
    queryKey: ["submission", id, "steps"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/submissions/{submission_id}/steps", {
          params: { path: { submission_id: id } },
          signal,
        }),
      ),
  });

/** All versions of the series that a submission belongs to. */
export const versionsQuery = (id: number) =>
  queryOptions({
    queryKey: ["submission", id, "versions"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/submissions/{submission_id}/versions", {
          params: { path: { submission_id: id } },
          signal,
        }),
      ),
  });

export const plansQuery = queryOptions({
  queryKey: ["plans"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/plans", { signal })),
  ...RARELY_CHANGES,
});

export const treesQuery = queryOptions({
  queryKey: ["trees"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/trees", { signal })),
  ...RARELY_CHANGES,
});

export const deviceTypesQuery = queryOptions({
  queryKey: ["device-types"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/device-types", { signal })),
});

export const devicesQuery = queryOptions({
  queryKey: ["devices"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/devices", { signal })),
});

export const tokensQuery = queryOptions({
  queryKey: ["tokens"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/tokens", { signal })),
});

/** Who waits for which board, and why. */
export const queueQuery = queryOptions({
  queryKey: ["queue"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/queue", { signal })),
});

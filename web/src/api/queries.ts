/**
 * Query options for each resource: the only place that names query keys, with intakeQueries.ts, outboxQueries.ts and historyQueries.ts. A page calls
 * `useSuspenseQuery(submissionQuery(id))` and invalidates with the same function's `queryKey`.
 */
import { keepPreviousData, QueryClient, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { paths } from "./gen/schema";
import { ApiError } from "./problem";
import type { AnyComparison, BranchInspection, GitBranches, SubmissionRequest, ThreadPreview } from "./types";

/** For resources that change only when an operator edits a file. */
const RARELY_CHANGES = { staleTime: 5 * 60_000 } as const;

/** For requests whose caller shows the error itself, beside a field or in place of a text. */
export const SHOWN_IN_PLACE = { throwOnError: false } as const;

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The lab may be on a private network: only whether it answers counts (connection.ts).
        networkMode: "always",
        staleTime: 10_000,
        refetchOnWindowFocus: true,
        // Without data the boundary of the section or page shows the error with a retry, instead of its skeleton.
        throwOnError: (_, query) => query.state.data === undefined,
        // A rejected request would be rejected again, except while other reports of the user are in progress (429).
        retry: (failures, error) =>
          !(error instanceof ApiError && error.status < 500 && error.status !== 429) && failures < 2,
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

/** Each boot's value of one metric, and the repetitions that it is the median of. */
export const cellValuesQuery = (run: number, scenario: string, metric: string) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["run", run, "values", scenario, metric],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/runs/{run_id}/values", {
          params: { path: { run_id: run }, query: { scenario, metric } },
          signal,
        }),
      ),
  });

/** The series of two submissions, patch by patch. */
export const rangeDiffQuery = (first: number, second: number) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["submission", first, "range-diff", second],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/submissions/{submission_id}/range-diff/{other_id}", {
          params: { path: { submission_id: first, other_id: second } },
          signal,
        }),
      ),
    ...RARELY_CHANGES,
  });

/** Any two measured sides, by their selectors. */
export const anyComparisonQuery = (left: string, right: string) =>
  queryOptions({
    queryKey: ["compare", left, right],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/compare", { params: { query: { left, right } }, signal }),
        // openapi-fetch's types turn tuples into arrays.
      ) as Promise<AnyComparison>,
  });

/** The steps of a submission, with the `event_seq` to follow events from. */
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

/**
 * The request of a submission and the result of applying its series. `finishedAt` is when the apply job finished:
 * nothing else changes this data, so its key is outside the keys that events invalidate.
 */
export const seriesQuery = (id: number, finishedAt: string | null) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["series", id, finishedAt],
    queryFn: async ({ signal }) => {
      const { request, apply } = await dataOf(
        api.GET("/api/v1/submissions/{submission_id}", { params: { path: { submission_id: id } }, signal }),
      );
      return { request, apply };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

/** A build with its warnings and the commands that reproduce it. `finishedAt` is when the build finished. */
export const buildQuery = (id: number, finishedAt: string | null) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["build", id, finishedAt],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/builds/{build_id}", { params: { path: { build_id: id } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** All versions of the series of a submission. */
export const versionsQuery = (id: number) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["submission", id, "versions"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/submissions/{submission_id}/versions", {
          params: { path: { submission_id: id } },
          signal,
        }),
      ),
  });

/** Names of plans with their metrics, of device types and of trees, for filters. */
export const namesQuery = queryOptions({
  queryKey: ["names"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/names", { signal })),
  ...RARELY_CHANGES,
});

/** A plan with its script, other files and README; undefined if there is none of the name. */
export const planQuery = (name: string) =>
  queryOptions({
    queryKey: ["plans", name],
    queryFn: async ({ signal }) => {
      const query = { name, files: true };
      return (await dataOf(api.GET("/api/v1/plans", { params: { query }, signal })))[0] ?? null;
    },
    ...RARELY_CHANGES,
  });

/** All plans without their files. */
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

export const recipesQuery = queryOptions({
  queryKey: ["recipes"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/recipes", { signal })),
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

export const labsQuery = queryOptions({
  queryKey: ["labs"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/labs", { signal })),
});

/** What uses the storage of each machine. */
export const storageQuery = queryOptions({
  queryKey: ["storage"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/lab/storage", { signal })),
});

export const tokensQuery = (page: { cursor?: string; limit?: number }) =>
  queryOptions({
    queryKey: ["tokens", page],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/tokens", { params: { query: page }, signal })),
    placeholderData: keepPreviousData,
  });

/** The queue: which runs wait for which device, and why. */
export const queueQuery = queryOptions({
  queryKey: ["queue"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/queue", { signal })),
});

/** The quote for a request. `key` identifies the request, which may hold an mbox too long for a query key. */
export const quoteQuery = (request: SubmissionRequest, key: string) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["quote", key],
    queryFn: ({ signal }) => dataOf(api.POST("/api/v1/quotes", { body: request, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: 20_000,
  });

/** Text of an mbox file that is not UTF-8. */
export const decodeMbox = (file: ArrayBuffer) =>
  dataOf(
    api.POST("/api/v1/series/decode", {
      body: file as unknown as string,
      bodySerializer: bytes => bytes,
      headers: { "Content-Type": "application/octet-stream" },
      parseAs: "text",
    }),
  );

/** The patches of an mbox. `key` identifies the mbox. */
export const inspectionQuery = (text: string, key: string) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["inspection", key],
    queryFn: ({ signal }) => dataOf(api.POST("/api/v1/series/inspect", { body: { text }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The targets that the lab proposes for a series. `key` identifies the series. */
export const touchesQuery = (series: SubmissionRequest["series"], tree: string, key: string) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["touches", key, tree],
    queryFn: ({ signal }) =>
      dataOf(api.POST("/api/v1/touches", { body: { series: series ?? {}, tree: tree || null }, signal })),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

/** The branches of a repository, as listed by a worker. */
export const branchesQuery = (url: string) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["branches", url],
    queryFn: async ({ signal }) => {
      for (;;) {
        // Long polling: the server answers when the worker has, or after some seconds.
        const found: GitBranches = await dataOf(
          api.GET("/api/v1/git/branches", { params: { query: { url } }, signal }),
        );
        if (found.state === "finished") return found;
      }
    },
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

/** A branch that a worker reads, and the tree that it is compared with. */
export interface BranchToRead {
  url: string;
  ref: string;
  base: string;
  tree: string;
}

/** The patches of a branch, as read by a worker. The request is repeated until the answer's state is `finished`. */
export const branchReadingQuery = ({ url, ref, base, tree }: BranchToRead) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["branch", url, ref, base, tree],
    queryFn: ({ signal }): Promise<BranchInspection> => {
      const query = { url, ref, ...(base ? { base } : {}), ...(tree ? { tree } : {}) };
      return dataOf(api.GET("/api/v1/git/branches/inspection", { params: { query }, signal }));
    },
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    // Long polling: the server answers when the worker has, or after some seconds.
    refetchInterval: query => (query.state.data && query.state.data.state !== "finished" ? 100 : false),
  });

/** What a submission of this Message-ID would take, as found by a worker; an empty revision is the latest. */
export const threadQuery = (message: string, revision: string) =>
  queryOptions({
    ...SHOWN_IN_PLACE,
    queryKey: ["thread", message, revision],
    queryFn: async ({ signal }) => {
      const query = { message_id: message, ...(revision ? { revision: Number(revision) } : {}) };
      for (;;) {
        // Long polling: the server answers when the worker has, or after some seconds.
        const found: ThreadPreview = await dataOf(
          api.GET("/api/v1/archives/thread", { params: { query }, signal }),
        );
        if (found.state === "finished") return found;
      }
    },
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

/** The lab's mail archives. */
export const archivesQuery = queryOptions({
  queryKey: ["archives"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/archives", { signal })),
  staleTime: 60_000,
});

export const usersQuery = (filters: { q?: string; cursor?: string; limit?: number }) =>
  queryOptions({
    queryKey: ["users", filters],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/users", { params: { query: filters }, signal })),
    placeholderData: keepPreviousData,
  });

export type AuditFilters = NonNullable<paths["/api/v1/audit"]["get"]["parameters"]["query"]>;

export const auditQuery = (filters: AuditFilters) =>
  queryOptions({
    queryKey: ["audit", filters],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/audit", { params: { query: filters }, signal })),
    placeholderData: keepPreviousData,
  });

export const deviceQuery = (name: string) =>
  queryOptions({
    queryKey: ["devices", name],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/devices/{name}", { params: { path: { name } }, signal })),
  });

/** What A/A comparisons have shown of a device, or of all devices with a plan. */
export const canariesQuery = (of: { device?: string; plan?: string }) =>
  queryOptions({
    queryKey: ["canaries", of],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/canaries", { params: { query: of }, signal })),
  });

/** A device's health changes, runs and last consoles; `cursor` pages through the runs. */
export const deviceHistoryQuery = (name: string, page: { limit?: number; cursor?: string }) =>
  queryOptions({
    queryKey: ["devices", name, "history", page],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/devices/{name}/history", { params: { path: { name }, query: page }, signal })),
    placeholderData: keepPreviousData,
  });

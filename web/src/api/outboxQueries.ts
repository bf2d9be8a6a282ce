/** Query options for what the lab sends: deliveries, webhooks, forges and the address of results. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { paths } from "./gen/schema";
import { SHOWN_IN_PLACE } from "./queries";

export type DeliveryFilters = NonNullable<paths["/api/v1/deliveries"]["get"]["parameters"]["query"]>;

/** What the lab sends: to one's own webhooks and account, for maintainers the answers to series and to forges too. */
export const deliveriesQuery = (filters: DeliveryFilters) =>
  queryOptions({
    queryKey: ["deliveries", filters],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/deliveries", { params: { query: filters }, signal })),
    placeholderData: keepPreviousData,
  });

export const deliveryQuery = (id: number) =>
  queryOptions({
    queryKey: ["deliveries", id],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/deliveries/{delivery_id}", { params: { path: { delivery_id: id } }, signal })),
  });

/** What maintainers review. */
export const MAILS_TO_REVIEW = { kind: "mail", state: "waiting_for_review" } as const;

/** The number of mails that wait for review. For maintainers. */
export const mailsToReviewQuery = queryOptions({
  ...SHOWN_IN_PLACE,
  ...deliveriesQuery({ ...MAILS_TO_REVIEW, limit: 1 }),
  select: page => page.total,
});

/** One's own webhooks; for administrators those of all users. */
export const webhooksQuery = (filters: { cursor?: string; limit?: number }) =>
  queryOptions({
    queryKey: ["webhooks", filters],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/webhooks", { params: { query: filters }, signal })),
    placeholderData: keepPreviousData,
  });

/** Poll: there are no events for forges. */
const FORGES_REFRESH_MS = 15_000;

/** Forges, for maintainers. */
export const forgesQuery = queryOptions({
  queryKey: ["forges"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/forges", { signal })),
  refetchInterval: FORGES_REFRESH_MS,
});

/** One forge with its heads that wait or are not measured. */
export const forgeQuery = (name: string) =>
  queryOptions({
    queryKey: ["forges", name],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/forges/{name}", { params: { path: { name } }, signal })),
    refetchInterval: FORGES_REFRESH_MS,
  });

/** The address that results are mailed to. */
export const mailAddressQuery = queryOptions({
  queryKey: ["mail-address"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/mail-address", { signal })),
});

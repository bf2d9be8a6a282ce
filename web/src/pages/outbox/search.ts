/** Search parameters of the pages about deliveries, and their translation to API filters. */
import type { DeliveryFilters } from "@/api/outboxQueries";
import { oneOf, text, type Values, whole } from "@/lib/search";
import { KINDS, STATES } from "./labels";

export const DELIVERY_PARAMS = {
  kind: oneOf(KINDS),
  state: oneOf(STATES),
  webhook: whole({ min: 1 }),
  submission: whole({ min: 1 }),
  cursor: text(100),
};

export type DeliverySearch = Values<typeof DELIVERY_PARAMS>;

/** Return the API's filters; those that are not set are left out. */
export function toDeliveryFilters(search: DeliverySearch, limit: number): DeliveryFilters {
  const filters: DeliveryFilters = { limit };
  for (const [name, value] of Object.entries(search))
    if (value !== "" && value !== null) Object.assign(filters, { [name]: value });
  return filters;
}

/** Read a number that was typed into a filter; null if it is none. */
export function typedNumber(typed: string): number | null {
  return whole({ min: 1 }).read(typed.replace(/^#/, ""));
}

/** Labels of webhooks: events and filters. */
import type { OutboxEvent, WebhookView } from "@/api/types";

/** When each event is sent; the type makes a missing one an error. */
export const EVENT_MEANING: Record<OutboxEvent, string> = {
  "submission.accepted": "a submission was created",
  "submission.finished": "a submission has finished, however it ended",
  "regression.found": "a finished submission has a target with the verdict regression",
  "culprit.found": "a bisection has found the commit that has changed a metric or makes the kernel fail",
  "device.quarantined": "a device was taken out of the pool",
  "lab.lost": "the worker of a lab has not reported for a while; only for webhooks without a filter",
};
export const EVENTS = Object.keys(EVENT_MEANING) as OutboxEvent[];

/** `all`, or the names of the events. */
export function eventsText(events: readonly OutboxEvent[]): string {
  return EVENTS.every(each => events.includes(each)) ? "all" : events.join(", ");
}

/** The filters that an event has to match; `everything` without any. */
export function filterText({ mine, device_types, plans }: WebhookView["filter"]): string {
  const parts = [
    ...(mine ? ["the owner's submissions"] : []),
    ...(device_types?.length ? [`device types ${device_types.join(", ")}`] : []),
    ...(plans?.length ? [`plans ${plans.join(", ")}`] : []),
  ];
  return parts.join("; ") || "everything";
}

/** Words and requests of subscriptions. */
import type { SubscriptionKind, SubscriptionRequest } from "@/api/types";

/** Every kind; the type makes a missing one an error. */
export const KIND_WORDS: Record<SubscriptionKind, string> = {
  my_series: "my series",
  device_type: "a device type",
  regressions: "regressions of a plan",
};

/** The request that a form with the fields `device_type`, `plan` and `webhook` asks for; empty fields are null. */
export function requestOf(kind: SubscriptionKind, form: FormData): SubscriptionRequest {
  const text = (name: string) => String(form.get(name) ?? "") || null;
  const webhook = text("webhook");
  return {
    kind,
    device_type: kind === "my_series" ? null : text("device_type"),
    plan: kind === "regressions" ? text("plan") : null,
    webhook_id: webhook === null ? null : Number(webhook),
  };
}

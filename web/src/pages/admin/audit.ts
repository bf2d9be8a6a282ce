/** Search parameters of the audit log, and the text of an entry's detail. */
import type { AuditFilters } from "@/api/queries";
import type { AuditAction, AuditOutcome } from "@/api/types";
import { day, oneOf, text, type Values } from "@/lib/search";
import { dayAfter, startOfDay } from "@/lib/time";

/** Every action; the type makes a missing one an error. */
const KNOWN: Record<AuditAction, true> = {
  "session.sign_in": true,
  "session.sign_out": true,
  "session.change_password": true,
  "token.create": true,
  "token.revoke": true,
  "user.create": true,
  "user.change": true,
  "user.reset_password": true,
  "submission.create": true,
  "submission.cancel": true,
  "submission.retry": true,
  "submission.pin": true,
  "submission.unpin": true,
  "device.quarantine": true,
  "device.release": true,
  "device.check": true,
  "device.change": true,
  "lab.invite": true,
  "lab.join": true,
  "lab.register": true,
  "lab.remove": true,
  "mail_address.ask": true,
  "mail_address.confirm": true,
  "mail_address.remove": true,
  "mail_address.switch": true,
  "forge.event": true,
  "forge.poll": true,
  "webhook.create": true,
  "webhook.rotate": true,
  "webhook.remove": true,
  "delivery.replay": true,
  "mail.approve": true,
  "mail.edit": true,
  "mail.drop": true,
  "webhook.test": true,
  "webhook.pause": true,
  "webhook.resume": true,
  "watch.create": true,
  "watch.change": true,
  "watch.enable": true,
  "watch.disable": true,
  "watch.remove": true,
  "watch.check": true,
  "shift.change": true,
  "bisection.create": true,
  "bisection.cancel": true,
  "data.change": true,
  "settings.change": true,
  "audit.prune": true,
  request: true,
};
export const ACTIONS = Object.keys(KNOWN) as AuditAction[];
export const OUTCOMES: readonly AuditOutcome[] = ["done", "refused"];

export const AUDIT_PARAMS = {
  actor: text(),
  action: oneOf(ACTIONS),
  resource: text(),
  address: text(100),
  outcome: oneOf(OUTCOMES),
  since: day(),
  until: day(),
  cursor: text(100),
};

export type AuditSearch = Values<typeof AUDIT_PARAMS>;

/** Translate search parameters to API filters; the days are in local time, and `until` is included. */
export function toAuditFilters(search: AuditSearch, limit: number): AuditFilters {
  const { since, until, ...others } = search;
  const filters: AuditFilters = { limit };
  for (const [name, value] of Object.entries(others))
    if (value !== "") Object.assign(filters, { [name]: value });
  if (since) filters.since = startOfDay(since).toISOString();
  if (until) filters.until = dayAfter(until).toISOString();
  return filters;
}

/** Format a detail such as `{ role: "admin" }` as `role: admin`. */
export function detailText(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name}: ${valueText(value)}`)
    .join("; ");
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}

/** Columns of tables of deliveries. */
import { Link } from "@tanstack/react-router";
import type { DeliveryView } from "@/api/types";
import { humanize, oneLine } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { eventText } from "./labels";
import classes from "./outbox.module.css";

export const what: Column<DeliveryView> = {
  id: "what",
  header: "What",
  rowHeader: true,
  value: titleOf,
  cell: of => (
    <Link to="/deliveries/$id" params={{ id: of.id }} className={classes.what}>
      {titleOf(of)}
    </Link>
  ),
};

export const kind: Column<DeliveryView> = {
  id: "kind",
  header: "Kind",
  value: of => (of.kind === "mail" ? `mail, ${eventText(of)}` : humanize(of.kind)),
};

export const destination: Column<DeliveryView> = {
  id: "to",
  header: "To",
  value: of => of.destination,
  wrap: true,
  cell: of => <span className={classes.long}>{oneLine(of.destination)}</span>,
};

export const state: Column<DeliveryView> = {
  id: "state",
  header: "State",
  value: of => humanize(of.state),
  cell: of => <StateBadge state={of.state} />,
};

export const created: Column<DeliveryView> = {
  id: "created",
  header: "Created",
  value: of => of.created_at,
  time: true,
};

export const decidedBy: Column<DeliveryView> = {
  id: "decided",
  header: "Decided by",
  hint: "Who approved or dropped it, or had it sent again",
  value: of => of.decided_by,
};

export const attempts: Column<DeliveryView> = {
  id: "attempts",
  header: "Attempts",
  numeric: true,
  value: of => of.tries,
};

export const next: Column<DeliveryView> = {
  id: "next",
  header: "Next attempt",
  value: of => of.next_at,
  cell: of => <NextAttempt at={of.next_at} />,
};

export const reason: Column<DeliveryView> = {
  id: "reason",
  header: "Reason",
  hint: "The last error, or who decided what",
  value: of => of.reason,
  wrap: true,
  cell: of => <span className={classes.long}>{oneLine(of.reason)}</span>,
};

/** When it is sent; `due` if the time has come. */
export function NextAttempt({ at }: { at: string | null }) {
  const now = useNow(5_000);
  return at !== null && Date.parse(at) <= now.getTime() ? "due" : <RelativeTime at={at} absent="–" />;
}

/** Subject of a mail, event of a webhook. */
export function titleOf(of: DeliveryView): string {
  return oneLine(of.subject ?? eventText(of)) || eventText(of);
}

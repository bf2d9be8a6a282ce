import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { queueQuery } from "@/api/queries";
import type { QueueEntry, QueueView, WaitingOrder } from "@/api/types";
import { queueText } from "@/lib/devices";
import { count, number, signed } from "@/lib/numbers";
import { roughDuration } from "@/lib/time";
import { humanize, oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./LabPage.module.css";

const REFRESH_MS = 15_000;

/** Table of queued runs with the reason for waiting and the estimated start. */
export function Queue() {
  const { data } = useQuery({ ...queueQuery, refetchInterval: REFRESH_MS });
  return (
    <Section id="queue" title="Queue" lead={data ? queueText(data) : "\u00a0"}>
      {!data ? (
        <Skeleton lines={4} height="1.8rem" />
      ) : data.entries.length === 0 ? null : (
        <DataTable
          caption={queued(data)}
          captionHidden={data.entries.length === data.total}
          columns={COLUMNS}
          rows={data.entries}
          rowKey={of => of.run_id}
          fixedOrder
          narrow="stack"
        />
      )}
      {data && <p className="fine">{data.rule}</p>}
      {data && data.orders.length > 0 && (
        <DataTable
          caption="Not submitted yet"
          columns={ORDER_COLUMNS}
          rows={data.orders}
          rowKey={of => `${of.source} ${of.key}`}
          fixedOrder
          narrow="stack"
        />
      )}
    </Section>
  );
}

const ORDER_COLUMNS: Column<WaitingOrder>[] = [
  {
    id: "order",
    header: "Order",
    rowHeader: true,
    value: of => `${of.source} ${of.key}`,
    cell: of => (
      <>
        {of.source} {oneLine(of.key)}
        {of.watch !== null && (
          <Link className={classes.note} to="/watches/$name" params={{ name: of.watch }}>
            {of.watch}
          </Link>
        )}
      </>
    ),
  },
  { id: "why", header: "Reason", wrap: true, value: of => oneLine(of.reason) },
  { id: "retry", header: "Next attempt", value: of => of.retry_at, time: true },
];

function queued({ entries, total }: QueueView): string {
  return entries.length < total ? `Queued runs, the first ${entries.length} of ${total}` : "Queued runs";
}

/** Format a score as the sum of its terms: `50 + 3.2 − 25`. */
export function points(of: Pick<QueueEntry, "priority" | "aging" | "share">): string {
  const term = (value: number) => signed(value).replace(/^([+\u2212])/, "$1 ");
  const parts = [String(of.priority)];
  if (of.aging !== 0) parts.push(term(of.aging));
  if (of.share !== 0) parts.push(term(of.share));
  return parts.join(" ");
}

const COLUMNS: Column<QueueEntry>[] = [
  { id: "position", header: "Position", numeric: true, value: of => of.position },
  {
    id: "what",
    header: "Run",
    rowHeader: true,
    value: title,
    cell: of => (
      <>
        {of.submission_id === null ? (
          title(of)
        ) : (
          <Link to="/submissions/$id" params={{ id: of.submission_id }} search={{ run: of.run_id }}>
            {title(of)}
          </Link>
        )}
        <span className={classes.note}>
          {of.plan}, {of.owner}
        </span>
      </>
    ),
  },
  {
    id: "device",
    header: "Device",
    value: of => of.wanted_device ?? of.device_type,
    cell: of => (
      <>
        {of.wanted_device ?? of.device_type}
        <span className={classes.note}>
          {of.position_in_type > 0
            ? `position ${of.position_in_type} for its type`
            : `reserved: ${of.offered_device}`}
        </span>
      </>
    ),
  },
  {
    id: "why",
    header: "Reason",
    wrap: true,
    value: of => of.why,
    cell: of => (
      <>
        {oneLine(of.why)}
        <Ahead of={of} />
      </>
    ),
  },
  {
    id: "score",
    header: "Score",
    hint: "Priority, plus points for waiting time, minus points for devices the owner already holds",
    numeric: true,
    value: of => of.score,
    text: of => number(of.score, 1),
    cell: of => (
      <>
        {number(of.score, 1)}
        <span className={classes.note}>{points(of)}</span>
      </>
    ),
  },
  {
    id: "waited",
    header: "Waiting time",
    numeric: true,
    value: of => of.waited_s,
    text: of => roughDuration(of.waited_s),
  },
  { id: "starts", header: "Estimated start", value: of => of.starts_at, time: "unknown" },
];

function Ahead({ of }: { of: QueueEntry }) {
  const ahead = [...new Set(of.ahead.map(each => each.submission_id))].filter(id => id !== null);
  if (ahead.length === 0) return null;
  return (
    <span className={classes.note}>
      {count(of.ahead_runs, "run")} with {count(of.ahead_boots, "boot")} ahead:{" "}
      {ahead.slice(0, 5).map((id, at) => (
        <span key={id}>
          {at > 0 && ", "}
          <Link to="/submissions/$id" params={{ id }}>
            submission {id}
          </Link>
        </span>
      ))}
    </span>
  );
}

function title(of: QueueEntry): string {
  if (of.submission_id === null) return humanize(of.purpose);
  return `${of.submission_id}: ${oneLine(of.title) || "untitled"}`;
}

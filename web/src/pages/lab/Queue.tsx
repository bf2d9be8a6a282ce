import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { queueQuery } from "@/api/queries";
import type { QueueEntry, QueueView } from "@/api/types";
import { count, number, signed } from "@/lib/numbers";
import { rough } from "@/lib/time";
import { oneLine, spoken } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./LabPage.module.css";
import { NotRead } from "./NotRead";

const LOOK_AGAIN_MS = 15_000;

/** Who waits for which device, why, and by which rule. */
export function Queue() {
  const asked = useQuery({ ...queueQuery, refetchInterval: LOOK_AGAIN_MS });
  const { data } = asked;
  return (
    <Section id="queue" title="Queue" lead={data ? lead(data) : "\u00a0"}>
      {!data && asked.error ? (
        <NotRead what="The queue" error={asked.error} again={() => void asked.refetch()} />
      ) : !data ? (
        <Skeleton lines={4} height="1.8rem" />
      ) : data.entries.length === 0 ? (
        <EmptyState title="No run waits for a device">
          <Link to="/submit">A submission</Link> gets a device as soon as its kernels are built.
        </EmptyState>
      ) : (
        <DataTable
          caption="Runs that wait for a device"
          captionHidden
          columns={COLUMNS}
          rows={data.entries}
          rowKey={of => of.run_id}
          fixedOrder
          narrow="stack"
        />
      )}
      {data && <p className={classes.rule}>{data.rule}</p>}
    </Section>
  );
}

function lead(queue: QueueView): string {
  const waiting = queue.total === 0 ? "Nothing waits" : `${count(queue.total, "run")} wait for a device`;
  const cut = queue.entries.length < queue.total ? `; the first ${queue.entries.length} are listed` : "";
  const building =
    queue.waiting_for_kernels > 0
      ? ` ${count(queue.waiting_for_kernels, "run")} more will come when the kernels are built.`
      : "";
  return `${waiting}${cut}.${building}`;
}

/** `50 + 3.2 − 25`: how the score came about, as the rule says it. */
export function points(of: Pick<QueueEntry, "priority" | "aging" | "share">): string {
  const term = (value: number) => signed(value).replace(/^([+\u2212])/, "$1 ");
  const parts = [String(of.priority)];
  if (of.aging !== 0) parts.push(term(of.aging));
  if (of.share !== 0) parts.push(term(of.share));
  return parts.join(" ");
}

const COLUMNS: Column<QueueEntry>[] = [
  { id: "position", header: "place", numeric: true, value: of => of.position },
  {
    id: "what",
    header: "run",
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
    header: "device",
    value: of => of.wanted_device ?? of.device_type,
    cell: of => (
      <>
        {of.wanted_device ?? of.device_type}
        <span className={classes.note}>
          {of.position_in_type > 0
            ? `no. ${of.position_in_type} of its type`
            : `set aside: ${of.offered_device}`}
        </span>
      </>
    ),
  },
  {
    id: "why",
    header: "why it waits",
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
    header: "score",
    hint: "priority, plus points for waiting, less points for devices that the owner has already",
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
    header: "waited",
    numeric: true,
    value: of => of.waited_s,
    text: of => rough(of.waited_s),
  },
  {
    id: "starts",
    header: "begins about",
    value: of => of.starts_at,
    cell: of => <RelativeTime at={of.starts_at} absent="not known" />,
  },
];

function Ahead({ of }: { of: QueueEntry }) {
  const ahead = [...new Set(of.ahead.map(each => each.submission_id))].filter(id => id !== null);
  if (ahead.length === 0) return null;
  return (
    <span className={classes.note}>
      {count(of.ahead_runs, "run")} with {count(of.ahead_boots, "boot")} left; see{" "}
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
  if (of.submission_id === null) return spoken(of.purpose);
  return `${of.submission_id}: ${oneLine(of.title) || "untitled"}`;
}

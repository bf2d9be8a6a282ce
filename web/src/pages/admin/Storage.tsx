import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { storageQuery } from "@/api/queries";
import type { StorageArea, StorageView } from "@/api/types";
import { bytes } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import classes from "./LabsPage.module.css";

const REFRESH_MS = 60_000;

/** What uses the storage of each machine, the limits, and when retention deletes. */
export function Storage() {
  const { data } = useQuery({ ...storageQuery, refetchInterval: REFRESH_MS });
  return data ? <Areas storage={data} /> : null;
}

export function Areas({ storage }: { storage: StorageView }) {
  const rows = storage.machines.flatMap(({ machine, areas }) => areas.map(area => ({ machine, area })));
  return (
    <Section
      id="storage"
      title="Storage"
      lead="Files that no unfinished or pinned submission needs are deleted by age, by size, and when a volume is nearly full."
    >
      <DataTable
        caption="Storage"
        captionHidden
        copyable={false}
        columns={COLUMNS}
        rows={rows}
        rowKey={of => `${of.machine} ${of.area.name}`}
        narrow="stack"
        empty="No report yet: the first one is made within a minute."
      />
      {storage.pinned.length > 0 && (
        <p>
          Pinned submissions:{" "}
          {storage.pinned.map((id, at) => (
            <span key={id}>
              {at > 0 && ", "}
              <Link to="/submissions/$id" params={{ id }}>
                {id}
              </Link>
            </span>
          ))}
        </p>
      )}
    </Section>
  );
}

interface Row {
  machine: string;
  area: StorageArea;
}

const COLUMNS: Column<Row>[] = [
  { id: "machine", header: "Machine", value: of => of.machine },
  {
    id: "area",
    header: "Area",
    rowHeader: true,
    value: of => of.area.name,
    cell: of => <Area of={of.area} />,
  },
  { id: "used", header: "Used", numeric: true, value: of => of.area.bytes, cell: of => bytes(of.area.bytes) },
  {
    id: "pinned",
    header: "Pinned or in use",
    numeric: true,
    value: of => of.area.pinned_bytes ?? 0,
    cell: of => (of.area.pinned_bytes ? bytes(of.area.pinned_bytes) : "\u2013"),
  },
  { id: "limit", header: "Limit", value: of => limitOf(of.area) },
  {
    id: "free",
    header: "Free",
    numeric: true,
    value: of => of.area.free_bytes ?? null,
    cell: of => (typeof of.area.free_bytes === "number" ? bytes(of.area.free_bytes) : "\u2013"),
  },
  {
    id: "next",
    header: "Next deletion",
    value: of => of.area.next_deletion_at ?? null,
    time: "\u2013",
  },
];

function Area({ of: area }: { of: StorageArea }) {
  return (
    <>
      {oneLine(area.name)}
      <span className={classes.note}>{oneLine(area.problem || area.summary || "")}</span>
    </>
  );
}

/** `50.0 GiB, 90 days`. */
function limitOf(area: StorageArea): string {
  const parts = [];
  if (typeof area.limit_bytes === "number") parts.push(bytes(area.limit_bytes));
  if (typeof area.keep_s === "number") parts.push(`${Math.round(area.keep_s / 86_400)} days`);
  return parts.join(", ") || "\u2013";
}

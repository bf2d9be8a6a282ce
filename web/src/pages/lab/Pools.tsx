import type { LabView } from "@/api/types";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./LabPage.module.css";

/** The labs whose devices these are, where there is more than the one beside the server. */
export function Pools({ labs }: { labs: readonly LabView[] }) {
  return (
    <Section
      id="labs"
      title="Labs"
      lead="Each lab has a worker that drives its devices. A run goes to the lab with the shortest queue."
    >
      <DataTable
        caption="Labs"
        captionHidden
        copyable={false}
        columns={COLUMNS}
        rows={labs}
        rowKey={of => of.name}
        narrow="stack"
        empty="No lab is known."
      />
    </Section>
  );
}

const COLUMNS: Column<LabView>[] = [
  { id: "lab", header: "lab", rowHeader: true, value: of => of.name },
  { id: "how", header: "reached by", wrap: true, value: howOf, cell: of => <How lab={of} /> },
  { id: "free", header: "free", numeric: true, value: of => of.free },
  { id: "busy", header: "at work", numeric: true, value: of => of.busy },
  { id: "away", header: "not to be had", numeric: true, value: of => of.away },
  {
    id: "heard",
    header: "worker heard",
    value: of => of.last_seen_at,
    cell: of =>
      of.last_seen_at ? <RelativeTime at={of.last_seen_at} /> : <span className="muted">never</span>,
  },
];

function How({ lab }: { lab: LabView }) {
  const { pool } = lab;
  return (
    <>
      {pool ? (
        <a href={pool.url}>
          LAVA{pool.version && ` ${pool.version}`} at {new URL(pool.url).host}
        </a>
      ) : (
        howOf(lab)
      )}
      <span className={classes.note}>{lab.problem ? oneLine(lab.problem) : pool && devicesOf(pool)}</span>
    </>
  );
}

function howOf(lab: LabView): string {
  return lab.backend === "lava" ? "LAVA" : lab.backend;
}

/** All devices of the server, ours or not: `qemu: 2 devices, 1 idle, 3 jobs wait`. */
function devicesOf(pool: NonNullable<LabView["pool"]>): string {
  const types = new Map<string, { all: number; idle: number }>();
  for (const device of Object.values(pool.devices ?? {})) {
    const counted = types.get(device.device_type) ?? { all: 0, idle: 0 };
    counted.all += 1;
    counted.idle += device.state === "Idle" ? 1 : 0;
    types.set(device.device_type, counted);
  }
  const said = [...types].sort().map(([type, { all, idle }]) => {
    const waiting = pool.queued?.[type] ?? 0;
    const wait = waiting > 0 ? `, ${waiting} ${waiting === 1 ? "job waits" : "jobs wait"}` : "";
    return `${type}: ${all} ${all === 1 ? "device" : "devices"}, ${idle} idle${wait}`;
  });
  return said.join("; ");
}

import type { LabView } from "@/api/types";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./LabPage.module.css";

/** Table of labs; shown if there is more than one. */
export function Labs({ labs }: { labs: readonly LabView[] }) {
  return (
    <Section
      id="labs"
      title="Labs"
      lead="Each lab has a worker that controls its devices. Runs go to the lab with the shortest queue."
    >
      <DataTable
        caption="Labs"
        captionHidden
        copyable={false}
        columns={COLUMNS}
        rows={labs}
        rowKey={of => of.name}
        narrow="stack"
        empty="No labs."
      />
    </Section>
  );
}

const COLUMNS: Column<LabView>[] = [
  { id: "lab", header: "Lab", rowHeader: true, value: of => of.name },
  { id: "how", header: "Backend", wrap: true, value: backendName, cell: of => <Backend lab={of} /> },
  { id: "free", header: "Free", numeric: true, value: of => of.free },
  { id: "busy", header: "In use", numeric: true, value: of => of.busy },
  { id: "away", header: "Unavailable", numeric: true, value: of => of.away },
  {
    id: "heard",
    header: "Last seen",
    value: of => of.last_seen_at,
    cell: of =>
      of.last_seen_at ? <RelativeTime at={of.last_seen_at} /> : <span className="muted">never</span>,
  },
];

function Backend({ lab }: { lab: LabView }) {
  const { pool } = lab;
  return (
    <>
      {pool ? <LavaLink url={pool.url} version={pool.version ?? ""} /> : backendName(lab)}
      <span className={classes.note}>{lab.problem ? oneLine(lab.problem) : pool && devicesOf(pool)}</span>
    </>
  );
}

/** Link to a LAVA server. Its worker sent the address, which may not be a URL. */
function LavaLink({ url, version }: { url: string; version: string }) {
  const parsed = parseUrl(url);
  const name = `LAVA${version && ` ${oneLine(version)}`}`;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return `${name} at an invalid address`;
  return (
    <a href={parsed.href}>
      {name} at {parsed.host}
    </a>
  );
}

function parseUrl(url: string): URL | null {
  try {
    return new URL(url);
  } catch {
    return null;
  }
}

function backendName(lab: LabView): string {
  return lab.backend === "lava" ? "LAVA" : lab.backend;
}

/**
 * Summarize all devices of the LAVA server, including those of other users: `qemu: 2 devices, 1 idle, 3 jobs queued`.
 */
function devicesOf(pool: NonNullable<LabView["pool"]>): string {
  const types = new Map<string, { all: number; idle: number }>();
  for (const device of Object.values(pool.devices ?? {})) {
    const counted = types.get(device.device_type) ?? { all: 0, idle: 0 };
    counted.all += 1;
    counted.idle += device.state === "Idle" ? 1 : 0;
    types.set(device.device_type, counted);
  }
  const parts = [...types].sort().map(([type, { all, idle }]) => {
    const queued = pool.queued?.[type] ?? 0;
    const jobs = queued > 0 ? `, ${queued} ${queued === 1 ? "job" : "jobs"} queued` : "";
    return `${type}: ${all} ${all === 1 ? "device" : "devices"}, ${idle} idle${jobs}`;
  });
  return parts.join("; ");
}

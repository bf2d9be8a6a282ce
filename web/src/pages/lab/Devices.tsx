import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useMay } from "@/api/session";
import type { DeviceTypeView, DeviceView, TimelineBar } from "@/api/types";
import { oneLine, spoken } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { DeviceActions } from "./DeviceActions";
import classes from "./LabPage.module.css";
import { compared } from "./layouts";

interface DevicesProps {
  type: DeviceTypeView;
  devices: readonly DeviceView[];
  /** What goes on, by run. */
  working: ReadonlyMap<number, TimelineBar>;
}

/** The devices of a type: how each is, and who has it. */
export function Devices({ type, devices, working }: DevicesProps) {
  const maintains = useMay()("maintain");
  const columns = useMemo(() => columnsOf(type, working, maintains), [type, working, maintains]);
  return (
    <DataTable
      caption={`Devices of ${type.name}`}
      captionHidden
      copyable={false}
      columns={columns}
      rows={devices}
      rowKey={of => of.name}
      narrow="stack"
      empty="No device of this type is in the lab."
    />
  );
}

function columnsOf(
  type: DeviceTypeView,
  working: ReadonlyMap<number, TimelineBar>,
  maintains: boolean,
): Column<DeviceView>[] {
  const columns: Column<DeviceView>[] = [
    {
      id: "device",
      header: "device",
      rowHeader: true,
      value: of => of.name,
      cell: of => (
        <Link to="/lab/$name" params={{ name: of.name }}>
          {of.name}
        </Link>
      ),
    },
    { id: "lab", header: "lab", value: of => (of.backend === "lava" ? `${of.lab} (LAVA)` : of.lab) },
    {
      id: "health",
      header: "health",
      wrap: true,
      value: of => of.health,
      cell: of => <HealthOf device={of} />,
    },
    {
      id: "lease",
      header: "who has it",
      wrap: true,
      value: of => of.lease?.run_id ?? null,
      cell: of => <HolderOf device={of} bar={of.lease ? working.get(of.lease.run_id) : undefined} />,
    },
    {
      id: "topology",
      header: "measured topology",
      value: of => compared(type.layout, of.layout),
    },
  ];
  if (maintains) {
    columns.push({
      id: "actions",
      header: "actions",
      bare: true,
      sortable: false,
      value: () => null,
      cell: of => <DeviceActions device={of} />,
    });
  }
  return columns;
}

/** Its state, why, and when it was looked at last. */
export function HealthOf({ device }: { device: DeviceView }) {
  return (
    <>
      <StateBadge state={device.health} />
      <span className={classes.note}>
        {device.health_reason && <>{oneLine(device.health_reason)}; </>}
        checked <RelativeTime at={device.health_checked_at} />
        {device.away && <>; not to be had now: {oneLine(device.away)}</>}
        {device.check_requested_at && (
          <>
            ; check asked for <RelativeTime at={device.check_requested_at} />
          </>
        )}
      </span>
    </>
  );
}

/** `bar`: the time that the run has the device, which says what the run is. */
export function HolderOf({ device, bar }: { device: DeviceView; bar: TimelineBar | undefined }) {
  const { lease } = device;
  if (!lease) {
    return <span className="muted">{device.elsewhere ? oneLine(device.elsewhere) : "nobody"}</span>;
  }
  return (
    <>
      {bar?.submission_id != null ? (
        <Link to="/submissions/$id" params={{ id: bar.submission_id }} search={{ run: lease.run_id }}>
          {bar.submission_id}: {oneLine(bar.title) || "untitled"}
        </Link>
      ) : bar ? (
        spoken(bar.purpose)
      ) : (
        `run ${lease.run_id}`
      )}
      <span className={classes.note}>
        {bar?.submission_id != null && `${bar.plan}, ${bar.owner}; `}lease of {lease.holder}, renewed before{" "}
        <RelativeTime at={lease.expires_at} />
      </span>
    </>
  );
}

import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useHasScope } from "@/api/session";
import type { CpuLayout, DeviceTypeView, DeviceView } from "@/api/types";
import { humanize, oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { compareWithDescription } from "./compareLayouts";
import { DeviceActions } from "./DeviceActions";
import classes from "./LabPage.module.css";

interface DevicesProps {
  types: readonly DeviceTypeView[];
  devices: readonly DeviceView[];
}

/** Table of all devices: type, health, holder and topology. */
export function Devices({ types, devices }: DevicesProps) {
  const canMaintain = useHasScope()("maintain");
  const columns = useMemo(() => {
    const layouts = new Map(types.map(type => [type.name, type.layout]));
    return columnsOf(of => layouts.get(of.device_type) ?? null, canMaintain);
  }, [types, canMaintain]);
  return (
    <DataTable
      caption="Devices"
      captionHidden
      copyable={false}
      columns={columns}
      rows={devices}
      rowKey={of => of.name}
      narrow="stack"
      empty="No devices."
    />
  );
}

function columnsOf(
  declared: (device: DeviceView) => CpuLayout | null,
  canMaintain: boolean,
): Column<DeviceView>[] {
  const columns: Column<DeviceView>[] = [
    {
      id: "device",
      header: "Device",
      rowHeader: true,
      value: of => of.name,
      cell: of => (
        <Link to="/lab/$name" params={{ name: of.name }}>
          {of.name}
        </Link>
      ),
    },
    { id: "type", header: "Type", value: of => of.device_type },
    { id: "lab", header: "Lab", value: of => (of.backend === "lava" ? `${of.lab} (LAVA)` : of.lab) },
    {
      id: "health",
      header: "Health",
      wrap: true,
      value: of => of.health,
      cell: of => <HealthText device={of} />,
    },
    {
      id: "lease",
      header: "Held by",
      wrap: true,
      value: of => of.lease?.run_id ?? null,
      cell: of => <Holder device={of} />,
    },
    {
      id: "topology",
      header: "Measured topology",
      value: of => {
        const layout = declared(of);
        return layout && compareWithDescription(layout, of.layout);
      },
    },
  ];
  if (canMaintain) {
    columns.push({
      id: "actions",
      header: "Actions",
      bare: true,
      sortable: false,
      value: () => null,
      cell: of => <DeviceActions device={of} />,
    });
  }
  return columns;
}

/** Health state, reason and time of the last check. */
export function HealthText({ device }: { device: DeviceView }) {
  return (
    <>
      <StateBadge state={device.health} />
      <span className={classes.note}>
        {device.health_reason && <>{oneLine(device.health_reason)}; </>}
        {device.health_checked_at ? (
          <>
            checked <RelativeTime at={device.health_checked_at} />
          </>
        ) : (
          "never checked"
        )}
        {device.away && <>; unavailable: {oneLine(device.away)}</>}
        {device.check_requested_at && (
          <>
            ; check requested <RelativeTime at={device.check_requested_at} />
          </>
        )}
      </span>
    </>
  );
}

/** The run that holds the device. */
export function Holder({ device }: { device: DeviceView }) {
  const { lease } = device;
  if (!lease) {
    return <span className="muted">{device.elsewhere ? oneLine(device.elsewhere) : "none"}</span>;
  }
  return (
    <>
      {lease.submission_id != null ? (
        <Link to="/submissions/$id" params={{ id: lease.submission_id }} search={{ run: lease.run_id }}>
          {lease.submission_id}: {oneLine(lease.title) || "untitled"}
        </Link>
      ) : (
        humanize(lease.purpose)
      )}
      <span className={classes.note}>
        {lease.submission_id != null && `${lease.plan}, ${lease.owner}; `}lease of {lease.holder}, expires{" "}
        <RelativeTime at={lease.expires_at} />
      </span>
    </>
  );
}

import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useHasScope } from "@/api/session";
import type { DeviceTypeView, DeviceView } from "@/api/types";
import { conditionOf, kindOf } from "@/lib/devices";
import { humanize, oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { describe } from "@/parts/topology/layout";
import { compareWithDescription } from "./compareLayouts";
import { DeviceActions } from "./DeviceActions";
import classes from "./LabPage.module.css";

interface DevicesProps {
  types: readonly DeviceTypeView[];
  devices: readonly DeviceView[];
}

/** Table of all devices: type, state, holder and topology. */
export function Devices({ types, devices }: DevicesProps) {
  const canMaintain = useHasScope()("maintain");
  const severalLabs = new Set(devices.map(each => each.lab)).size > 1;
  const columns = useMemo(
    () => columnsOf(new Map(types.map(type => [type.name, type])), severalLabs, canMaintain),
    [types, severalLabs, canMaintain],
  );
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
  types: ReadonlyMap<string, DeviceTypeView>,
  severalLabs: boolean,
  canMaintain: boolean,
): Column<DeviceView>[] {
  const lab: Column<DeviceView> = {
    id: "lab",
    header: "Lab",
    value: of => (of.backend === "lava" ? `${of.lab} (LAVA)` : of.lab),
  };
  const actions: Column<DeviceView> = {
    id: "actions",
    header: "Actions",
    bare: true,
    sortable: false,
    value: () => null,
    cell: of => <DeviceActions device={of} />,
  };
  return [
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
    {
      id: "type",
      header: "Type",
      bare: true,
      value: of => of.device_type,
      cell: of => <Type name={of.device_type} type={types.get(of.device_type)} />,
    },
    ...(severalLabs ? [lab] : []),
    {
      id: "state",
      header: "State",
      bare: true,
      value: conditionOf,
      cell: of => <Condition device={of} />,
    },
    {
      id: "lease",
      header: "Held by",
      wrap: true,
      value: of => of.lease?.run_id ?? null,
      cell: of => (of.lease || of.elsewhere ? <Holder device={of} /> : null),
    },
    {
      id: "topology",
      header: "Measured topology",
      value: of => {
        const described = types.get(of.device_type)?.layout;
        return described && of.layout?.basis === "measured"
          ? compareWithDescription(described, of.layout)
          : null;
      },
    },
    ...(canMaintain ? [actions] : []),
  ];
}

function Type({ name, type }: { name: string; type: DeviceTypeView | undefined }) {
  return (
    <>
      {name}
      {type && (
        <>
          <span className="muted"> {kindOf(type)}</span>
          <span className={`${classes.note} ${classes.wide}`}>{describe(type.layout)}</span>
        </>
      )}
    </>
  );
}

/** State of a device and the time of its last check; the reason of a bad one is listed above the table. */
function Condition({ device }: { device: DeviceView }) {
  return (
    <>
      <StateBadge state={conditionOf(device)} />
      {device.health_checked_at && (
        <span className={`${classes.note} ${classes.wide}`}>
          checked <RelativeTime at={device.health_checked_at} />
        </span>
      )}
      {device.health === "suspect" && device.health_reason && (
        <span className={classes.note}>{oneLine(device.health_reason)}</span>
      )}
      {device.check_requested_at && (
        <span className={classes.note}>
          check requested <RelativeTime at={device.check_requested_at} />
        </span>
      )}
      {device.away && <span className={classes.note}>unavailable</span>}
    </>
  );
}

/** State of a device with its reason. */
export function ConditionText({ device }: { device: DeviceView }) {
  return (
    <>
      <Condition device={device} />
      <span className={classes.note}>
        {[device.health === "suspect" ? "" : device.health_reason, device.away]
          .filter(Boolean)
          .map(oneLine)
          .join("; ")}
      </span>
    </>
  );
}

/** The run that holds the device. */
export function Holder({ device }: { device: DeviceView }) {
  const { lease } = device;
  if (!lease) return device.elsewhere ? <span className="muted">{oneLine(device.elsewhere)}</span> : null;
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

/** Table of a comparison's boots with their repetitions and links to their consoles. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { cellValuesQuery } from "@/api/queries";
import type { BootPoint } from "@/api/types";
import { metricName, number, places } from "@/lib/numbers";
import { type Column, DataTable } from "@/parts/DataTable";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./CellSection.module.css";
import type { Cell } from "./model";

const route = getRouteApi("/r/$id");

/** Disclosure that loads the repetitions when opened; the report itself has only each boot's median. */
export function BootValues({ selected: { target, of } }: { selected: Cell }) {
  const { id } = route.useParams();
  const [open, setOpen] = useState(false);
  const { data, error } = useQuery({
    ...cellValuesQuery(target.run_id, of.scenario, of.metric),
    enabled: open,
  });
  const points = useMemo(() => data?.points.filter(point => isCompared(point, of)), [data, of]);
  const columns = useMemo(() => columnsOf(id, target.run_id, points ?? []), [id, target.run_id, points]);
  return (
    <details className={classes.boots} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>Boots and repetitions</summary>
      {points ? (
        <DataTable
          caption={`Boots: ${metricName(of.metric)}`}
          captionHidden
          columns={columns}
          rows={points}
          rowKey={point => `${point.boot_id} ${point.setting}`}
          maxHeight="20rem"
        />
      ) : error ? (
        <p className="muted">The boots could not be loaded: {error.message}</p>
      ) : (
        <Skeleton lines={6} />
      )}
    </details>
  );
}

/** Return true if the boot belongs to one of the two compared arms. */
export function isCompared(point: Pick<BootPoint, "arm" | "setting">, of: Cell["of"]): boolean {
  if (of.question === "kernel") return point.setting === of.setting;
  return point.arm === of.kernel && (point.setting === of.setting || point.setting === of.reference);
}

function columnsOf(submission: number, run: number, points: readonly BootPoint[]): Column<BootPoint>[] {
  const decimals = places(points.flatMap(point => point.repetitions));
  const settings = new Set(points.map(point => point.setting)).size > 1;
  return [
    { id: "block", header: "Block", numeric: true, value: point => point.block + 1 },
    { id: "arm", header: "Kernel", value: point => point.arm },
    ...(settings
      ? [{ id: "setting", header: "Setting", value: (point: BootPoint) => point.setting } as const]
      : []),
    {
      id: "boot",
      header: "Boot",
      rowHeader: true,
      value: point => point.boot_id,
      cell: point => (
        <Link
          to="/submissions/$id"
          params={{ id: submission }}
          search={{ run, boot: point.boot_id }}
          title="Console of this boot"
        >
          {point.boot_id}
        </Link>
      ),
    },
    { id: "device", header: "Device", value: point => point.device },
    {
      id: "value",
      header: "Value",
      hint: "Median of the boot's repetitions",
      numeric: true,
      value: point => point.value,
      text: point => number(point.value, decimals),
    },
    {
      id: "repetitions",
      header: "Repetitions",
      hint: "In order, without the warm-up",
      sortable: false,
      value: point => point.repetitions.map(each => number(each, decimals)).join("  "),
    },
  ];
}

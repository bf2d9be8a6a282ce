import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { DeviceTypeView, PlanView } from "@/api/types";
import { countsText } from "@/lib/devices";
import { type Column, DataTable } from "@/parts/DataTable";
import { FilterBar, TextFilter } from "@/parts/FilterBar";
import { describe } from "@/parts/topology/layout";
import { type Draft, nameOf, type Pair, pairs, selectedTargets, withTarget } from "../draft/draft";
import type { ChangeDraft } from "../draft/useDraft";
import classes from "./TargetTable.module.css";

interface TargetTableProps {
  plans: readonly PlanView[];
  types: readonly DeviceTypeView[];
  draft: Draft;
  change: ChangeDraft;
}

interface Row {
  pair: Pair;
  selected: boolean;
  /** Undefined if this lab has none of the name in the URL. */
  plan?: PlanView["plan"] | undefined;
  /** Undefined also in a sweep, which has its own device types. */
  type?: DeviceTypeView | undefined;
}

/** Each plan on each device type; in a sweep each plan. A target is shown if it has each word of the filter. */
export function TargetTable({ plans, types, draft, change }: TargetTableProps) {
  const [filter, setFilter] = useState(() => (selectedTargets(draft).length > 0 ? "" : draft.plan.join(" ")));
  const columns = useMemo(() => columnsOf(change), [change]);
  const rows = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/);
    return rowsOf(plans, types, draft).filter(row => words.every(word => textOf(row).includes(word)));
  }, [plans, types, draft, filter]);
  return (
    <div className="stack">
      <FilterBar>
        <TextFilter label="Filter" hint="fsync xeon" value={filter} onValue={setFilter} />
      </FilterBar>
      <DataTable
        caption="Plans and device types"
        captionHidden
        copyable={false}
        columns={columns}
        rows={rows}
        rowKey={row => nameOf(row.pair)}
        empty="No target has these words."
        maxHeight="30rem"
      />
    </div>
  );
}

/** Selected targets that the lab does not have come first, health checks last. */
function rowsOf(plans: readonly PlanView[], types: readonly DeviceTypeView[], draft: Draft): Row[] {
  const selected = new Set(selectedTargets(draft).map(nameOf));
  const known = plans
    .toSorted((a, b) => Number(a.plan.checks_health) - Number(b.plan.checks_health))
    .flatMap(({ plan }) =>
      (draft.vary === "" ? types : [undefined]).map((type): Row => {
        const pair = { plan: plan.name, type: type?.name ?? "" };
        return { pair, selected: selected.has(nameOf(pair)), plan, type };
      }),
    );
  const names = new Set(known.map(row => nameOf(row.pair)));
  const unknown = pairs(draft).filter(pair => selected.has(nameOf(pair)) && !names.has(nameOf(pair)));
  return [...unknown.map(pair => ({ pair, selected: true })), ...known];
}

const labelOf = ({ plan, type }: Pair) => (type === "" ? plan : `${plan} on ${type}`);

function kindOf({ type }: Row): string {
  if (!type) return "";
  return type.modelled ? "modelled" : type.emulated ? "emulated" : "hardware";
}

function textOf(row: Row): string {
  const { pair, plan, type } = row;
  return [labelOf(pair), kindOf(row), plan?.summary, type?.summary, type && describe(type.layout)]
    .join(" ")
    .toLowerCase();
}

/** The primary metric. */
function measured({ plan, type }: Row): string {
  if (!plan) return "";
  if (plan.checks_health) return "health of the device";
  const role = (type?.emulated ?? true) ? "role_emulated" : "role_hardware";
  return plan.metrics.find(metric => metric[role] === "primary")?.name ?? "metrics";
}

function columnsOf(change: ChangeDraft): Column<Row>[] {
  return [
    {
      id: "target",
      header: "Target",
      rowHeader: true,
      value: row => labelOf(row.pair),
      cell: ({ pair, selected }) => (
        <label className={classes.target}>
          <input
            type="checkbox"
            checked={selected}
            onChange={event => {
              const on = event.currentTarget.checked;
              change(before => withTarget(before, pair, on));
            }}
          />
          {labelOf(pair)}
        </label>
      ),
    },
    { id: "kind", header: "Kind", value: kindOf },
    { id: "topology", header: "Topology", value: ({ type }) => type && describe(type.layout) },
    { id: "devices", header: "Devices", value: ({ type }) => type && countsText(type.device_counts) },
    {
      id: "measures",
      header: "Measures",
      value: measured,
      cell: row =>
        row.plan ? (
          <Link to="/plans/$name" params={{ name: row.plan.name }}>
            {measured(row)}
          </Link>
        ) : (
          "not in this lab"
        ),
    },
  ];
}

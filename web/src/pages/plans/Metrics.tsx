import type { Metric, TestPlan } from "@/api/types";
import { EVIDENCE, oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { BETTER, deltaOf, ROLES } from "./labels";
import classes from "./Metrics.module.css";

/** Sort order: primary metrics first. */
const RANK = { primary: 0, secondary: 1, explanatory: 2 } as const;

const COLUMNS: readonly Column<Metric>[] = [
  {
    id: "name",
    header: "Metric",
    rowHeader: true,
    value: row => row.name,
    cell: row => <code>{row.name}</code>,
  },
  {
    id: "summary",
    header: "Description",
    wrap: true,
    value: row => oneLine(row.summary),
    cell: row => <span className={classes.meaning}>{oneLine(row.summary)}</span>,
  },
  { id: "unit", header: "Unit", value: row => row.unit },
  {
    id: "better",
    header: "Better",
    hint: "Direction of an improvement",
    value: row => BETTER[row.direction],
  },
  {
    id: "class",
    header: "Class",
    hint: `mechanism: ${EVIDENCE.mechanism.meaning} performance: ${EVIDENCE.performance.meaning}`,
    value: row => row.class,
  },
  role("role_hardware", "Role on hardware"),
  role("role_emulated", "Role on emulated devices"),
  {
    id: "delta",
    header: "Threshold",
    hint: "Smallest relevant effect (delta)",
    value: row => row.delta,
    text: deltaOf,
    cell: row => <span className="nowrap">{deltaOf(row)}</span>,
  },
  {
    id: "taken",
    header: "Taken from",
    hint: "Repetitions with or without tracers",
    value: row => row.taken_from,
  },
];

function role(of: "role_hardware" | "role_emulated", header: string): Column<Metric> {
  return {
    id: of,
    header,
    value: row => RANK[row[of]],
    text: row => ROLES[row[of]],
    cell: row => (row[of] === "primary" ? <strong>{ROLES.primary}</strong> : ROLES[row[of]]),
  };
}

export function Metrics({ plan }: { plan: TestPlan }) {
  return (
    <>
      <DataTable
        caption={`Metrics of ${plan.name}`}
        captionHidden
        columns={COLUMNS}
        rows={plan.metrics}
        rowKey={row => row.name}
      />
      {plan.tradeoff && (
        <p>
          The tradeoff figure plots <code>{plan.tradeoff.locality}</code> against{" "}
          <code>{plan.tradeoff.work_conservation}</code>.
        </p>
      )}
      {plan.curve && (
        <p>
          The curve figures plot <code>{plan.curve.metrics.join(" ")}</code> over{" "}
          <code>{plan.curve.over}</code>, one line per setting.
        </p>
      )}
    </>
  );
}

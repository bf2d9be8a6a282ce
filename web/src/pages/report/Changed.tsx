/** What the series changed: functions as signed bars, the largest change first, and which changed lines ran. */
import { memo } from "react";
import type { InstrumentCell, Report } from "@/api/types";
import { basis, type FunctionCounts, perOperation } from "@/lib/instrumented";
import { signed } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import classes from "./Changed.module.css";
import { Ran } from "./Ran";

/** The counts of the first target that has those of both kernels. */
export function firstCounts(report: Report): InstrumentCell | undefined {
  return report.targets
    .flatMap(target => target.instrument)
    .find(cell => cell.changed.length > 0 && Object.keys(cell.totals).length > 1);
}

export const Changed = memo(function Changed({ report }: { report: Report }) {
  const cell = firstCounts(report);
  const target = report.targets.find(each => each.instrument.some(its => its === cell));
  const ran = report.targets.filter(each => each.ran);
  if (!cell && ran.length === 0) return null;
  return (
    <Section id="changed" title="What the patch changed" lead={cell && target && `On ${target.device_type}`}>
      {cell && <FunctionBars cell={cell} />}
      {ran.map(each => (
        <Ran
          key={each.run_id}
          target={each}
          diff={report.diff}
          where={ran.length > 1 ? each.device_type : ""}
        />
      ))}
    </Section>
  );
});

/** Functions that changed most, sorted by the change of their instructions. */
export function FunctionBars({ cell }: { cell: InstrumentCell }) {
  const where = [cell.scenario, cell.setting].filter(Boolean).join(" ");
  const rows = cell.changed.toSorted(
    (a, b) => Math.abs(changeOf(b, "instructions")) - Math.abs(changeOf(a, "instructions")),
  );
  const quantity = (name: Quantity, header: string, seeds: (of: FunctionCounts) => number) =>
    columnsOf(cell, rows, name, header, seeds);
  return (
    <>
      <DataTable
        caption={`${where}: functions that changed most (${basis(cell)})`}
        columns={[
          {
            id: "name",
            header: "Function",
            value: of => of.name,
            text: of => `${oneLine(of.name)}${of.touched ? " *" : ""}`,
            cell: of => (
              <>
                {oneLine(of.name)}
                {of.touched && " *"} <span className="muted">{oneLine(of.file)}</span>
              </>
            ),
            rowHeader: true,
          },
          ...quantity("instructions", "Instructions", of => of.instruction_seeds),
          ...quantity("transfers", "Cache lines", of => of.transfer_seeds),
        ]}
        rows={rows}
        rowKey={of => `${of.file} ${of.name}`}
        fixedOrder
      />
      <p className="fine">
        {Object.keys(cell.totals).length > 1 && "Grey: not in the same direction under every seed."}
        {rows.some(of => of.touched) && " * is a function that the series changes."}
      </p>
    </>
  );
}

type Quantity = "instructions" | "transfers";

function columnsOf(
  cell: InstrumentCell,
  rows: readonly FunctionCounts[],
  quantity: Quantity,
  header: string,
  seeds: (of: FunctionCounts) => number,
): Column<FunctionCounts>[] {
  const both = Object.keys(cell.totals).length > 1;
  const largest = Math.max(...rows.map(of => Math.abs(changeOf(of, quantity))));
  const counts: Column<FunctionCounts> = {
    id: quantity,
    header,
    numeric: true,
    value: of => Object.values(of.per_op).at(-1)?.[quantity],
    text: of =>
      (["baseline", "candidate"] as const)
        .flatMap(arm => (of.per_op[arm] ? [perOperation(of.per_op[arm]?.[quantity] ?? 0)] : []))
        .join(" → "),
  };
  if (!both) return [counts];
  return [
    counts,
    {
      id: `${quantity}-change`,
      header: "Change",
      value: of => changeOf(of, quantity),
      text: of => `${signed(changeOf(of, quantity))} (${seeds(of)}/${cell.seeds.length} seeds)`,
      cell: of => {
        const change = changeOf(of, quantity);
        return (
          <span className={classes.change} title={`${seeds(of)} of ${cell.seeds.length} seeds`}>
            <span
              className={classes.bar}
              data-sign={Math.sign(change)}
              data-sure={seeds(of) === cell.seeds.length || undefined}
            >
              <span style={{ width: `${largest ? (50 * Math.abs(change)) / largest : 0}%` }} />
            </span>
            {change === 0 ? "0" : signed(change)}
          </span>
        );
      },
    },
  ];
}

function changeOf({ per_op: { baseline, candidate } }: FunctionCounts, quantity: Quantity): number {
  return (candidate?.[quantity] ?? 0) - (baseline?.[quantity] ?? 0);
}

/** How long work items waited in traced repetitions, and where they started. Explanatory only. */
import type { TargetReport, WaitCell } from "@/api/types";
import { count, microseconds, number } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import classes from "./Counts.module.css";

type Work = WaitCell["works"][number];

export function Waits({ target }: { target: TargetReport }) {
  const cells = target.waits ?? [];
  if (cells.length === 0) return null;
  const columns = columnsOf(target.environment?.topology?.last_level ?? "L3");
  return (
    <details>
      <summary>How long work items waited, and where they started</summary>
      <div className={classes.whole}>
        {cells.map(cell => (
          <OneCell key={`${cell.scenario} ${cell.setting}`} cell={cell} columns={columns} />
        ))}
        <p className={classes.note}>
          p50 and p99 of the time from queueing to start are upper ends of histogram buckets: the time is
          between half of the figure and the figure. Places are seen from the CPU that queued the work item;
          each includes the ones before it. All work items of the device are counted, also those of the
          repetition’s preparation.
          {target.emulated &&
            " On an emulated device counts and places are evidence of the mechanism, and times are values only."}
        </p>
      </div>
    </details>
  );
}

function OneCell({ cell, columns }: { cell: WaitCell; columns: readonly Column<Work>[] }) {
  const where = [cell.scenario, cell.setting].filter(Boolean).join(" ");
  const hidden = cell.functions - new Set(cell.works.map(work => work.function)).size;
  return (
    <div className={classes.cell}>
      {cell.works.length > 0 && (
        <DataTable
          caption={`${where}: work functions that differ, in ${repetitions(cell)}`}
          columns={columns}
          rows={cell.works}
          rowKey={work => `${work.function} ${work.arm}`}
          fixedOrder
        />
      )}
      {hidden > 0 && cell.works.length > 0 && (
        <p className={classes.note}>{count(hidden, "other function")} not shown.</p>
      )}
      {cell.notes.map(note => (
        <p key={note} className={classes.note}>
          {cell.works.length === 0 && `${where}, `}
          {oneLine(note)}.
        </p>
      ))}
    </div>
  );
}

/** Return the traced repetitions: `2 traced repetitions of each kernel`. */
function repetitions({ repetitions }: WaitCell): string {
  const arms = Object.entries(repetitions);
  const [first] = arms;
  if (first && arms.length > 1 && arms.every(([, many]) => many === first[1]))
    return `${count(first[1], "traced repetition")} of each kernel`;
  return arms.map(([arm, many]) => `${count(many, "traced repetition")} of the ${arm}`).join(" and ");
}

function share(value: number | null | undefined): string {
  return value == null ? "not counted" : `${number(value, 1)} %`;
}

function columnsOf(level: string): readonly Column<Work>[] {
  const place = (id: "same_cpu" | "same_l3" | "same_node", header: string): Column<Work> => ({
    id,
    header,
    numeric: true,
    value: work => work[id],
    text: work => share(work[id]),
  });
  const bound = (id: "p50_us" | "p99_us", header: string): Column<Work> => ({
    id,
    header,
    numeric: true,
    value: work => work[id],
    text: work => `<= ${microseconds(work[id])}`,
    cell: work => `≤ ${microseconds(work[id])}`,
  });
  return [
    { id: "function", header: "function", value: work => work.function, rowHeader: true },
    { id: "arm", header: "kernel", value: work => work.arm },
    {
      id: "items",
      header: "work items",
      numeric: true,
      value: work => work.items,
      text: work => number(Math.round(work.items * 10) / 10),
    },
    bound("p50_us", "p50"),
    bound("p99_us", "p99"),
    place("same_cpu", "on its CPU"),
    place("same_l3", `in its ${level}`),
    place("same_node", "on its node"),
  ];
}

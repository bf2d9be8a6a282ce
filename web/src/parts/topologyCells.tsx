/** Columns of a table of series or versions: one for each device type that they ran on. */
import type { TargetSummary } from "@/api/types";
import { oneLine, VERDICT_ORDER } from "@/lib/words";
import type { Column } from "./DataTable";
import classes from "./topologyCells.module.css";
import { VerdictBadge } from "./VerdictBadge";

/** The target with the most severe verdict, by device type. */
export type TopologyCells = ReadonlyMap<string, TargetSummary>;

/** Merge submissions, the newest first: of each device type only the newest that ran on it counts. */
export function cellsByTopology(
  submissions: readonly { targets: readonly TargetSummary[] }[],
): TopologyCells {
  const cells = new Map<string, TargetSummary>();
  for (const { targets } of submissions)
    for (const [type, own] of Map.groupBy(targets, target => target.device_type))
      if (!cells.has(type)) cells.set(type, worstOf(own));
  return cells;
}

/** Return the target with the most severe verdict; one without a verdict comes last. */
export function worstOf(targets: readonly TargetSummary[]): TargetSummary {
  const weight = ({ verdict }: TargetSummary) =>
    verdict == null ? VERDICT_ORDER.length : VERDICT_ORDER.indexOf(verdict);
  return targets.toSorted((a, b) => weight(a) - weight(b))[0] as TargetSummary;
}

/** Return a column for each of the `most` device types that most rows ran on, headed by name and kind. */
export function topologyColumns<Row>(
  rows: readonly Row[],
  cellsOf: (row: Row) => TopologyCells,
  most: number,
): Column<Row>[] {
  const found = Map.groupBy(
    rows.flatMap(row => [...cellsOf(row)]),
    ([type]) => type,
  );
  return [...found]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .slice(0, most)
    .map(([type, cells]) => ({
      id: type,
      header: nameOf(type, cells[0]?.[1]),
      value: row => cellsOf(row).get(type)?.verdict,
      cell: row => <Cell of={cellsOf(row).get(type)} />,
    }));
}

function nameOf(type: string, target: TargetSummary | undefined): string {
  return `${type}${target?.modelled ? ", modelled" : target?.emulated ? ", emulated" : ""}`;
}

function Cell({ of }: { of: TargetSummary | undefined }) {
  if (!of) return <span className={classes.absent}>–</span>;
  if (of.verdict == null || of.outcome === "canceled")
    return <span className="muted">{of.outcome ?? of.state}</span>;
  return (
    <span title={oneLine(of.headline)}>
      <VerdictBadge verdict={of.verdict} short />
    </span>
  );
}

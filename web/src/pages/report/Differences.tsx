/** Facts of the environment that differ between the kernels, shown above the figures. */
import type { EnvironmentDifference, TargetReport } from "@/api/types";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";

export function Differences({ target }: { target: TargetReport }) {
  const found = target.environment?.differences ?? [];
  if (found.length === 0) return null;
  return (
    <DataTable
      caption="Differences between the kernels' environments"
      columns={COLUMNS}
      rows={found}
      rowKey={row => row.name}
    />
  );
}

const COLUMNS: Column<EnvironmentDifference>[] = [
  { id: "fact", header: "Fact", value: row => oneLine(row.name) },
  { id: "baseline", header: "Baseline", value: row => oneLine(row.baseline) },
  { id: "candidate", header: "Candidate", value: row => oneLine(row.candidate) },
];

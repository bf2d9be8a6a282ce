import { useMemo } from "react";
import type { HistoryShift } from "@/api/types";
import { DataTable } from "@/parts/DataTable";
import { groupShifts, summaryOf } from "./groups";
import { SHIFT_COLUMNS } from "./shiftColumns";

/** Shifts by device type; `types` are all that have lines, so that those without a shift are named too. */
export function ShiftGroups({
  shifts,
  types,
}: {
  shifts: readonly HistoryShift[];
  types: readonly string[];
}) {
  const groups = useMemo(() => groupShifts(shifts), [shifts]);
  const quiet = types.filter(type => groups.every(group => group.type !== type));
  return (
    <div className="stack">
      {groups.map(({ type, shifts: own }) => (
        <DataTable
          key={type}
          caption={`${type}: ${summaryOf(own)}`}
          columns={SHIFT_COLUMNS}
          rows={own}
          rowKey={of => of.id}
          fixedOrder
          narrow="stack"
        />
      ))}
      {quiet.length > 0 && <p className="muted">No shift on {quiet.join(", ")}.</p>}
    </div>
  );
}

/** Shifts by device type, as the dashboard lists them. */
import type { HistoryShift } from "@/api/types";
import { isOpen } from "./labels";

export interface ShiftGroup {
  type: string;
  /** Open ones first, then the newest. */
  shifts: HistoryShift[];
}

/** Group shifts by device type: those with open shifts first, then by name. */
export function groupShifts(shifts: readonly HistoryShift[]): ShiftGroup[] {
  return [...Map.groupBy(shifts, shift => shift.line.device_type)]
    .map(([type, own]) => ({ type, shifts: own.toSorted(byUrgency) }))
    .toSorted((a, b) => openFirst(b) - openFirst(a) || a.type.localeCompare(b.type));
}

/** Summarise a group: `2 worse, 1 better, 1 not reproduced`. Each shift is counted once. */
export function summaryOf(shifts: readonly HistoryShift[]): string {
  const words = ["worse", "better", "changed", "not reproduced", "explained", "fixed"];
  const counts = Map.groupBy(shifts, wordOf);
  return words
    .flatMap(word => {
      const found = counts.get(word)?.length ?? 0;
      return found > 0 ? [`${found} ${word}`] : [];
    })
    .join(", ");
}

function wordOf(shift: HistoryShift): string {
  if (!isOpen(shift)) return shift.state.replaceAll("_", " ");
  return shift.worse === null ? "changed" : shift.worse ? "worse" : "better";
}

const openFirst = ({ shifts }: ShiftGroup) => Number(shifts.some(isOpen));

function byUrgency(a: HistoryShift, b: HistoryShift): number {
  return Number(isOpen(b)) - Number(isOpen(a)) || b.id - a.id;
}

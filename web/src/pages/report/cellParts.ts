/** Navigation between comparisons that differ in one part. */
import { metricName } from "@/lib/numbers";
import type { Cell } from "./model";

export type CellPart = "target" | "question" | "scenario" | "setting" | "metric";

export interface Choice {
  place: CellPart;
  value: string;
  options: { value: string; name: string }[];
}

const CELL_PARTS: readonly CellPart[] = ["target", "question", "scenario", "setting", "metric"];

export function partOf({ target, of }: Cell, place: CellPart): string {
  if (place === "target") return String(target.run_id);
  if (place === "question") return `${of.question} ${of.kernel ?? ""}`;
  return of[place];
}

function nameOf(cell: Cell, place: CellPart): string {
  const { target, of } = cell;
  if (place === "target") return `${target.plan.name} on ${target.device_type}`;
  if (place === "question")
    return of.question === "kernel" ? "kernels" : `settings, on the ${of.kernel} kernel`;
  return (place === "metric" ? metricName(of.metric) : of[place]) || "none";
}

/** Return the options for each part: all targets, and the other parts of the selected target. */
export function partChoices(cells: readonly Cell[], selected: Cell): Choice[] {
  return CELL_PARTS.map(place => {
    const of = cells.filter(
      cell =>
        place === "target" ||
        (cell.target === selected.target &&
          (place === "question" || partOf(cell, "question") === partOf(selected, "question"))),
    );
    const options = new Map(of.map(cell => [partOf(cell, place), nameOf(cell, place)]));
    return {
      place,
      value: partOf(selected, place),
      options: [...options].map(([value, name]) => ({ value, name })),
    };
  });
}

/** Return the comparison with this `value` that has most in common with `selected`; the first of several. */
export function nearest(cells: readonly Cell[], selected: Cell, place: CellPart, value: string): Cell {
  let best = selected;
  let most = -1;
  for (const cell of cells) {
    if (partOf(cell, place) !== value) continue;
    // Another target may run another plan; keep as many parts as possible.
    const common = CELL_PARTS.filter(each => partOf(cell, each) === partOf(selected, each)).length;
    const primary = cell.of.role === "primary" ? 0.5 : 0;
    if (common + primary > most) [best, most] = [cell, common + primary];
  }
  return best;
}

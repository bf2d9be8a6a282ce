/** Moving from one comparison to another by changing one part of what it is. */
import type { Cell } from "./model";

export type Place = "target" | "question" | "scenario" | "setting" | "metric";

export interface Choice {
  place: Place;
  value: string;
  options: { value: string; name: string }[];
}

const PLACES: readonly Place[] = ["target", "question", "scenario", "setting", "metric"];

export function partOf({ target, of }: Cell, place: Place): string {
  if (place === "target") return String(target.run_id);
  if (place === "question") return `${of.question} ${of.kernel ?? ""}`;
  return of[place];
}

function nameOf(cell: Cell, place: Place): string {
  const { target, of } = cell;
  if (place === "target") return `${target.plan.name} on ${target.device_type}`;
  if (place === "question")
    return of.question === "kernel" ? "kernels" : `settings, on the ${of.kernel} kernel`;
  return of[place] || "none";
}

/** What each part can be: those of the chosen target, and every target. */
export function places(cells: readonly Cell[], selected: Cell): Choice[] {
  return PLACES.map(place => {
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

/** The comparison that has `value` there and else most in common with `selected`; the first of several. */
export function nearest(cells: readonly Cell[], selected: Cell, place: Place, value: string): Cell {
  let best = selected;
  let most = -1;
  for (const cell of cells) {
    if (partOf(cell, place) !== value) continue;
    // Another topology may have another plan: what then stays is the part of the comparison.
    const common = PLACES.filter(each => partOf(cell, each) === partOf(selected, each)).length;
    const primary = cell.of.role === "primary" ? 0.5 : 0;
    if (common + primary > most) [best, most] = [cell, common + primary];
  }
  return best;
}

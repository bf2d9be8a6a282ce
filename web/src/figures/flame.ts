/** Layout of a flame graph by place in the source tree: subsystem, file, function. The emulator has no call stacks. */
import type { Arm, InstrumentCell } from "@/api/types";
import { functionName, subsystemOf } from "@/lib/instrumented";

export type Quantity = "instructions" | "transfers";

export interface Box {
  key: string;
  name: string;
  /** Position and width as shares of the whole. */
  x: number;
  width: number;
  depth: number;
  before: number;
  after: number;
  /** Change relative to the larger count, -1 to 1; 0 for a function whose seeds do not agree. */
  change: number;
}

interface Place {
  name: string;
  before: number;
  after: number;
  agreed: boolean;
  parts: Map<string, Place>;
}

/** Relative changes from which a box has a stronger colour. */
const STEPS = [0.02, 0.1, 0.3];

/** Return the boxes of a flame graph, parents before their parts and the largest parts first. */
export function boxesOf(cell: InstrumentCell, quantity: Quantity): Box[] {
  const root = treeOf(cell, quantity);
  const boxes: Box[] = [];
  const add = (place: Place, path: string, x: number, width: number, depth: number) => {
    const largest = Math.max(place.before, place.after);
    const change = largest > 0 && place.agreed ? (place.after - place.before) / largest : 0;
    boxes.push({
      key: path,
      name: place.name,
      x,
      width,
      depth,
      before: place.before,
      after: place.after,
      change,
    });
    const size = sizeOf(place);
    let left = x;
    for (const part of [...place.parts.values()].toSorted(
      (a, b) => sizeOf(b) - sizeOf(a) || (a.name < b.name ? -1 : 1),
    )) {
      const share = size > 0 ? (width * sizeOf(part)) / size : 0;
      add(part, `${path}\n${part.name}`, left, share, depth + 1);
      left += share;
    }
  };
  add(root, "all", 0, 1, 0);
  return boxes;
}

/** Return the direction and strength of a change: `same`, `less 1` to `less 3`, `more 1` to `more 3`. */
export function toneOf(change: number): string {
  const strength = STEPS.filter(step => Math.abs(change) >= step).length;
  return strength === 0 ? "same" : `${change < 0 ? "less" : "more"} ${strength}`;
}

/**
 * Return the label of a box with room for `room` characters.
 *
 * The first that fits: name and change, last part of the path and change, name, last part, beginning of the last part.
 */
export function fittingText(name: string, change: string, room: number): string {
  const short = name.split("/").at(-1) || name;
  const found = [`${name} ${change}`.trim(), `${short} ${change}`.trim(), name, short].find(
    text => text.length <= room,
  );
  if (found !== undefined) return found;
  return room >= 4 ? `${short.slice(0, room - 1)}…` : "";
}

/** Return the count of a function with each kernel, in the order baseline, candidate. */
export function countsOf(
  perOp: Partial<Record<Arm, { instructions?: number; transfers?: number }>>,
  quantity: Quantity,
): number[] {
  return (["baseline", "candidate"] as const).flatMap(arm => {
    const found = perOp[arm];
    return found ? [found[quantity] ?? 0] : [];
  });
}

function treeOf(cell: InstrumentCell, quantity: Quantity): Place {
  const root = placeOf("all");
  for (const of of cell.functions) {
    const counts = countsOf(of.per_op, quantity);
    const [before = 0, after = before] = counts;
    const seeds = quantity === "instructions" ? of.instruction_seeds : of.transfer_seeds;
    // A file that is a subsystem of its own has one box.
    const places = new Set([subsystemOf(of), of.file].filter(Boolean));
    const path = [...places, functionName(of)];
    let place = root;
    place.before += before;
    place.after += after;
    for (const name of path) {
      const part = place.parts.get(name) ?? placeOf(name);
      place.parts.set(name, part);
      part.before += before;
      part.after += after;
      place = part;
    }
    place.agreed = seeds === cell.seeds.length;
  }
  return root;
}

function placeOf(name: string): Place {
  return { name, before: 0, after: 0, agreed: true, parts: new Map() };
}

/** Return the larger count, so that code which only one kernel executes is visible. */
function sizeOf(place: Place): number {
  if (place.parts.size === 0) return Math.max(place.before, place.after);
  return [...place.parts.values()].reduce((sum, part) => sum + sizeOf(part), 0);
}

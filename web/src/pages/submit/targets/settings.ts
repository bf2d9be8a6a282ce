import type { Axis } from "@/api/types";

interface Combinations {
  /** Values of the first knob. */
  rows: string[];
  /** Combinations of the others, `strict=1`; one empty one where there is no other. */
  columns: string[];
  /** The canonical setting: knobs by name. */
  cell(row: string, column: string): string;
}

/** Every setting that a plan's knobs make, as a table. */
export function combinations(axes: readonly Axis[]): Combinations {
  const [first, ...others] = axes;
  const columns = others.reduce<string[]>(
    (found, axis) => found.flatMap(before => axis.values.map(value => joined(before, pairOf(axis, value)))),
    [""],
  );
  return {
    rows: first?.values ?? [],
    columns,
    cell: (row, column) =>
      joined(column, first ? pairOf(first, row) : "")
        .split(",")
        .toSorted(byKnob)
        .join(","),
  };
}

/** Empty for a knob at its default: canonical settings leave it out. */
const pairOf = (axis: Axis, value: string) => (value === axis.default ? "" : `${axis.name}=${value}`);

const joined = (before: string, pair: string) => [before, pair].filter(Boolean).join(",");

// By code point, as the server sorts them.
function byKnob(a: string, b: string): number {
  const [one, other] = [a.slice(0, a.indexOf("=")), b.slice(0, b.indexOf("="))];
  return one < other ? -1 : one > other ? 1 : 0;
}

import type { Axis } from "@/api/types";

interface Combinations {
  /** Values of the first knob. */
  rows: string[];
  /** Combinations of the other knobs, `strict=1`; one empty string if there is only one knob. */
  columns: string[];
  /** Return the canonical setting: knobs sorted by name. */
  cell(row: string, column: string): string;
}

/** Combine the values of a plan's knobs into a table of settings. */
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

/** Return `name=value`; empty for the default value, which canonical settings omit. */
const pairOf = (axis: Axis, value: string) => (value === axis.default ? "" : `${axis.name}=${value}`);

const joined = (before: string, pair: string) => [before, pair].filter(Boolean).join(",");

// Sort by code point, like the server.
function byKnob(a: string, b: string): number {
  const [one, other] = [a.slice(0, a.indexOf("=")), b.slice(0, b.indexOf("="))];
  return one < other ? -1 : one > other ? 1 : 0;
}

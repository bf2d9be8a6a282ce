/** Order, domains and cells of a CPU by CPU matrix of cache line transfers. */
import type { InstrumentCell } from "@/api/types";

type Place = InstrumentCell["topology"][number];
export type Matrix = readonly (readonly number[])[];

/** Consecutive CPUs of the drawing in one last-level cache domain. */
export interface Domain {
  l3: number;
  node: number;
  start: number;
  end: number;
}

export interface MapCell {
  row: number;
  column: number;
  tone: "level" | "less" | "more";
  /** Strength of the colour, 0 to 1: the square root of the share of the largest value. */
  strength: number;
  from: number;
  to: number;
  value: number;
}

/** Return the CPUs in the order of the topology: by NUMA node, last-level cache domain and core. */
export function orderOf(topology: readonly Place[]): number[] {
  return topology
    .map((place, cpu) => ({ ...place, cpu }))
    .toSorted((a, b) => a.node - b.node || a.l3 - b.l3 || a.core - b.core || a.cpu - b.cpu)
    .map(({ cpu }) => cpu);
}

/** Return the last-level cache domains in the order of the drawing. */
export function domainsOf(topology: readonly Place[], order: readonly number[]): Domain[] {
  const domains: Domain[] = [];
  for (const [at, cpu] of order.entries()) {
    const { l3, node } = topology[cpu] as Place;
    const last = domains.at(-1);
    if (last && last.l3 === l3 && last.node === node) last.end = at + 1;
    else domains.push({ l3, node, start: at, end: at + 1 });
  }
  return domains;
}

/** Return the cells with transfers of one matrix, or with a change from `before` to it. */
export function cellsOf(order: readonly number[], matrix: Matrix, before?: Matrix): MapCell[] {
  const moved = (from: number, to: number) =>
    (matrix[from]?.[to] ?? 0) - (before ? (before[from]?.[to] ?? 0) : 0);
  const cells = order.flatMap((from, row) =>
    order.map((to, column) => ({ row, column, from, to, value: moved(from, to) })),
  );
  const largest = Math.max(...cells.map(cell => Math.abs(cell.value)), 0) || 1;
  return cells
    .filter(cell => cell.value !== 0)
    .map(cell => ({
      ...cell,
      tone: before ? (cell.value < 0 ? "less" : "more") : "level",
      strength: Math.sqrt(Math.abs(cell.value) / largest),
    }));
}

/** Transfers from one last-level cache domain to another, with each kernel. */
export interface Flow {
  from: string;
  to: string;
  counts: number[];
}

/** Return the transfers between domains, the most first. */
export function flowsOf(topology: readonly Place[], matrices: readonly Matrix[]): Flow[] {
  const flows = new Map<string, Flow>();
  for (const [arm, matrix] of matrices.entries())
    for (const [source, row] of matrix.entries())
      for (const [taker, value] of row.entries()) {
        const from = `L3 ${topology[source]?.l3}`;
        const to = `L3 ${topology[taker]?.l3}`;
        const flow = flows.get(`${from} ${to}`) ?? { from, to, counts: matrices.map(() => 0) };
        flow.counts[arm] = (flow.counts[arm] ?? 0) + value;
        flows.set(`${from} ${to}`, flow);
      }
  return [...flows.values()].toSorted((a, b) => Math.max(...b.counts) - Math.max(...a.counts));
}

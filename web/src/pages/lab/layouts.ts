/** Whether a device is what its type says it is. */
import type { CpuLayout } from "@/api/types";
import { count } from "@/lib/numbers";

const SHARED = [
  ["package", "packages"],
  ["node", "NUMA nodes"],
  ["l3", "L3 domains"],
  ["cluster", "clusters"],
  ["core", "cores"],
  ["capacity", "big and LITTLE"],
] as const;

/**
 * In what the measured layout is another than the described one; empty when it is the same. What only one of them
 * tells, such as clusters, is no difference.
 */
export function differences(described: CpuLayout, measured: CpuLayout): string[] {
  if (described.cpus !== measured.cpus)
    return [`${count(measured.cpus, "CPU")} instead of ${described.cpus}`];
  return SHARED.filter(([field]) => {
    const [one, other] = [described[field], measured[field]];
    return one != null && other != null && one.some((value, cpu) => value !== other[cpu]);
  }).map(([, word]) => word);
}

/** `same as described`, `differs in L3 domains, cores`, `not measured yet`. */
export function compared(described: CpuLayout, layout: CpuLayout | null | undefined): string {
  if (layout?.basis !== "measured") return "not measured yet";
  const found = differences(described, layout);
  return found.length === 0 ? "same as described" : `differs: ${found.join(", ")}`;
}

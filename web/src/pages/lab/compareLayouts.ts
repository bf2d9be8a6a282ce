/** Comparison of a device's measured CPU layout with the layout described by its type. */
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
 * Return the properties in which the layouts differ; empty if they agree. A property known for only one of them, such
 * as clusters, is not a difference.
 */
export function differences(described: CpuLayout, measured: CpuLayout): string[] {
  if (described.cpus !== measured.cpus)
    return [`${count(measured.cpus, "CPU")} instead of ${described.cpus}`];
  return SHARED.filter(([field]) => {
    const [one, other] = [described[field], measured[field]];
    return one != null && other != null && one.some((value, cpu) => value !== other[cpu]);
  }).map(([, word]) => word);
}

/** Describe the differences: `same as described`, `differs: L3 domains, cores`, `not measured yet`. */
export function compareWithDescription(described: CpuLayout, layout: CpuLayout | null | undefined): string {
  if (layout?.basis !== "measured") return "not measured yet";
  const found = differences(described, layout);
  return found.length === 0 ? "same as described" : `differs: ${found.join(", ")}`;
}

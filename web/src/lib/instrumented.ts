/** Texts of targets on instrumented devices; the same as in server/wqlab_server/reports/render/instrument_tables.py. */
import type { Comparison, TargetReport } from "@/api/types";
import { count, number } from "@/lib/numbers";

/** Explanation of the figures of an instrumented device, beside its verdict. */
export const COUNTS_ARE =
  "The emulator counted every instruction and every cache line that moved between CPUs: the same kernel, script, seed and emulator give the same counts. They are counts, not times, and are never compared with figures from hardware. They do not show contention (no CPU stalls for a lock or a line), prefetch or bandwidth, and each CPU executes one instruction a cycle.";

/** Return true if the target was run on an instrumented device. */
export function isInstrumented({ plan }: Pick<TargetReport, "plan">): boolean {
  return plan.metrics.some(metric => metric.class === "instrumented");
}

/** Return the kind of the device for its label; empty for hardware. */
export function deviceKind(target: Pick<TargetReport, "plan" | "emulated">): string {
  return isInstrumented(target) ? "instrumented" : target.emulated ? "emulated" : "";
}

/** Return the noise floors of the primary counts: `noise floor 0.031 %`, or that they were not measured. */
export function noiseFloor(target: TargetReport): string {
  const primaries = target.comparisons.filter(of => of.role === "primary");
  const kernels = primaries.filter(of => of.question === "kernel");
  const texts = (kernels.length > 0 ? kernels : primaries).map(of => noiseFloorOf(target, of));
  return [...new Set(texts)].join(" or ");
}

/** Return the noise floor of a judged count; empty for explanatory ones and figures of other devices. */
export function noiseFloorOf(target: TargetReport, of: Comparison): string {
  if (of.evidence !== "instrumented" || of.role === "explanatory") return "";
  // The control is a kernel; the noise of a change of settings is not known.
  const floors = of.question === "kernel" ? target.noise_floors : [];
  const found = floors.find(
    each => each.scenario === of.scenario && each.setting === of.setting && each.metric === of.metric,
  );
  return found ? `noise floor ${Number(found.floor.toPrecision(3))} %` : "noise floor not measured";
}

/** Return how the noise floor was measured, or that it was not. */
export function noiseNote(target: TargetReport): string {
  const about = "a control kernel that differs from its baseline by nops only";
  const [first] = target.noise_floors;
  if (!first)
    return `Noise floor: not measured for this plan on this device type. It is the effect of ${about}.`;
  const seeds = [...new Set(target.noise_floors.map(each => each.seeds))].join(" or ");
  return `Noise floor: the largest effect in the 95 % interval of ${about}, measured with ${seeds} seeds.`;
}

/** Format a count per operation with about three significant digits: `41.0`, `268412`, `0.0520`. */
export function perOperation(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return number(value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4);
}

/** Return the basis of the figures: `counts per fsync, means of 6 seeds`. */
export function basis(cell: { operation: string; seeds: readonly number[] }): string {
  return `counts per ${cell.operation}, means of ${count(cell.seeds.length, "seed")}`;
}

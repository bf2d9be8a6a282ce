/** Texts of targets on instrumented devices; the same as in report/wqlab_report/content/instrument_tables.py. */
import type { Comparison, InstrumentCell, TargetReport } from "@/api/types";
import { count, countsSeeds, number } from "@/lib/numbers";

/** Name of an entry that is a sum of others. */
const OTHER = "(other)";
/** Subsystem of programs. */
export const USER_SPACE = "user space";
export const WHOLE_KERNEL = "whole kernel";
const UNKNOWN_SOURCE = "source not known";

/** Explanation of the table by subsystem. */
export const SUBSYSTEMS_ARE =
  "Subsystems are folders of the source, two levels deep, and the files of kernel/; all but user space add up to the whole kernel.";
/** Explanation of lines of data that have one name. */
export const SAME_NAME =
  "Lines of data with one name are summed: the objects of a slab cache, or a variable of each CPU. Beside the name is the number of such lines in the measurement that has the most.";

/** Explanation of the figures of an instrumented device, beside its verdict. */
export const COUNTS_ARE =
  "The emulator counted every instruction and every cache line that moved between CPUs: the same kernel, script, seed and emulator give the same counts. They are counts, not times, and are never compared with figures from hardware. They do not show contention (no CPU stalls for a lock or a line), prefetch or bandwidth, and each CPU executes one instruction a cycle.";

/** What modelled figures cannot tell; the same as in report/wqlab_report/content/model_text.py. */
export const MODELS_CANNOT_TELL =
  "A model's figures in virtual time, not measured: what its stated costs leave out, it cannot tell. Never quote them as measured";
/** Explanation of the counts beside modelled figures. */
export const COUNTS_BESIDE_A_MODEL =
  "The emulator also counted every instruction and every cache line that moved between CPUs. The counts are exact for this kernel, script, seed and cost profile; the times follow from them by the costs that the profile states.";

/** Return true if the target has modelled figures. Its device is instrumented too. */
export function isModelled({ plan }: Pick<TargetReport, "plan">): boolean {
  return plan.metrics.some(metric => metric.class === "modelled");
}

/** Return `modelled on ryzen-3900x costs (sha256:1a2b3c4d5e6f)`. */
export function costsOf({ environment }: Pick<TargetReport, "environment">): string {
  const found = /^(\S+) sha256:([0-9a-f]{12})[0-9a-f]{52}$/.exec(environment?.facts["cost profile"] ?? "");
  return found ? `modelled on ${found[1]} costs (sha256:${found[2]})` : "modelled on unknown costs";
}

/** Return true if the target was run on an instrumented device. */
export function isInstrumented({ plan }: Pick<TargetReport, "plan">): boolean {
  return plan.metrics.some(metric => metric.class === "instrumented");
}

/** Return the kind of the device for its label; empty for hardware. */
export function deviceKind(target: Pick<TargetReport, "plan" | "emulated">): string {
  if (isModelled(target)) return "modelled";
  return isInstrumented(target) ? "instrumented" : target.emulated ? "emulated" : "";
}

/** Return the noise floor of a judged count or modelled figure; empty for other figures. */
export function noiseFloorOf(target: TargetReport, of: Comparison): string {
  if (!countsSeeds(of.evidence) || of.role === "explanatory") return "";
  // The control is a kernel; the noise of a change of settings is not known.
  const floors = of.question === "kernel" ? target.noise_floors : [];
  const found = floors.find(
    each => each.scenario === of.scenario && each.setting === of.setting && each.metric === of.metric,
  );
  if (!found) return "noise floor not measured";
  return `noise floor ${Number(found.floor.toPrecision(3))} ${of.effect_unit}`.trimEnd();
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

export type SubsystemCounts = InstrumentCell["subsystems"][number];
export type FunctionCounts = InstrumentCell["functions"][number];
export type LineCounts = InstrumentCell["lines"][number];

/** Return the rows of the table by subsystem: the kernel, user space, then the subsystems of the kernel. */
export function subsystemRows(cell: Pick<InstrumentCell, "kernel" | "subsystems">): SubsystemCounts[] {
  const user = cell.subsystems.filter(of => of.name === USER_SPACE);
  const parts = cell.subsystems.filter(of => of.name !== USER_SPACE);
  const rows = [...user, ...parts].map(of => ({ ...of, name: subsystemName(of) }));
  return cell.kernel ? [{ ...cell.kernel, name: WHOLE_KERNEL }, ...rows] : rows;
}

/** Return the name of a subsystem for people. */
function subsystemName({ name }: Pick<SubsystemCounts, "name">): string {
  return name === OTHER ? "other subsystems" : name || UNKNOWN_SOURCE;
}

/** Return the name of data, and the number of cache lines that have it if it is more than one. */
export function lineName({ symbol, addresses }: Pick<LineCounts, "symbol" | "addresses">): string {
  return addresses > 1 ? `${symbol} (up to ${addresses} lines)` : symbol;
}

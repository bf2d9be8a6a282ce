/** The words for conditions of devices and of the queue, the same on every page (docs/glossary.md). */
import type { DeviceCounts, DeviceTypeView, DeviceView, QueueView } from "@/api/types";
import { count } from "./numbers";
import { roughDuration } from "./time";

export const ALL_EMULATED = "All devices are emulated: they show what a kernel does, not how fast it is.";

export const CONDITIONS = [
  ["good", "free"],
  ["busy", "in use"],
  ["suspect", "suspect"],
  ["unknown", "not checked yet"],
  ["quarantined", "quarantined"],
] as const;

/** Return the state of a device: `free`, `in_use`, `not_checked_yet`, `suspect` or `quarantined`. */
export function conditionOf({ health, lease }: DeviceView): string {
  if (health === "suspect" || health === "quarantined") return health;
  if (lease) return "in_use";
  return health === "good" ? "free" : "not_checked_yet";
}

/** Return what a type's devices are: `emulated`, `modelled` or `hardware`. */
export function kindOf({ emulated, modelled }: DeviceTypeView): string {
  return modelled ? "modelled" : emulated ? "emulated" : "hardware";
}

/** Return the sum of the counts of several device types. */
export function sumOf(all: readonly DeviceCounts[]): DeviceCounts {
  const sum = { good: 0, busy: 0, suspect: 0, unknown: 0, quarantined: 0 };
  for (const counts of all) for (const [kind] of CONDITIONS) sum[kind] += counts[kind];
  return sum;
}

/**
 * Return `8 free, 2 in use, 1 not checked yet, 3 quarantined`; zero counts only of the first two. A new lab has
 * `18 ready for a first run, which checks them`: a device is checked when a run needs it.
 */
export function countsText(counts: DeviceCounts): string {
  const { unknown, ...others } = counts;
  if (unknown > 0 && Object.values(others).every(of => of === 0))
    return `${unknown} ready for a first run, which checks ${unknown === 1 ? "it" : "them"}`;
  return CONDITIONS.filter(([kind], at) => at < 2 || counts[kind] > 0)
    .map(([kind, word]) => `${counts[kind]} ${word}`)
    .join(", ");
}

/** Return `3 runs wait for a device, the last starts in 65 min; 2 wait for kernels`. */
export function queueText(queue: QueueView): string {
  const last = queue.entries
    .flatMap(each => each.starts_at ?? [])
    .toSorted()
    .at(-1);
  const starts = last
    ? `, the last starts in ${roughDuration((Date.parse(last) - Date.parse(queue.at)) / 1000)}`
    : "";
  const verb = (runs: number) => (runs === 1 ? "waits" : "wait");
  const parts = [
    ...(queue.total > 0 ? [`${count(queue.total, "run")} ${verb(queue.total)} for a device${starts}`] : []),
    ...(queue.waiting_for_kernels > 0
      ? [`${count(queue.waiting_for_kernels, "run")} ${verb(queue.waiting_for_kernels)} for kernels`]
      : []),
  ];
  return parts.length > 0 ? `${parts.join("; ")}.` : "Nothing waits: a run submitted now starts at once.";
}

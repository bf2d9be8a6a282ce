/** Texts for the steps of a submission, and cells of a run's block strip. */
import type { ApplyStep, Arm, AttemptView, BlockStep, BootStep, BuildStep, RunStep } from "@/api/types";
import { count } from "@/lib/numbers";
import { duration } from "@/lib/time";
import { oneLine } from "@/lib/words";

/** Short name of an arm: A is the baseline, B the candidate; in a walk C is the kernel after patch 1, and so on. */
export function letter(arm: Arm): string {
  if (arm === "baseline") return "A";
  return arm === "candidate" ? "B" : String.fromCharCode(66 + Number(arm.replace("patch-", "")));
}

/** Name of a boot, counted from one: `3B`, `3B, attempt 2`. */
export function bootName(boot: Pick<BootStep, "block" | "arm" | "attempt">): string {
  const again = boot.attempt > 0 ? `, attempt ${boot.attempt + 1}` : "";
  return `${boot.block + 1}${letter(boot.arm)}${again}`;
}

/** Return true if the submission tests a series, and false for a settings study of the tree's kernel. */
export function hasSeries(runs: readonly RunStep[]): boolean {
  return runs.some(run => run.blocks.some(block => block.arms.includes("candidate")));
}

/** Describe checkpatch's result: the findings, `clean`, or why not every patch was checked. */
export function checkpatchText(found: string, skipped = ""): string {
  if (!skipped) return found || "clean";
  return found ? `${found}; incomplete, because ${oneLine(skipped)}` : `not run, because ${oneLine(skipped)}`;
}

/** Describe the state or result of the apply step. */
export function applyText(apply: ApplyStep, series: boolean): string {
  if (apply.failure) return oneLine(apply.failure.summary);
  if (apply.state === "running") return oneLine(apply.progress) || "Starting";
  if (apply.state !== "finished") return "Waiting for a builder";
  const base = apply.base_commit
    ? `${apply.base_commit.slice(0, 12)}${apply.release ? ` (${oneLine(apply.release)})` : ""}`
    : "";
  if (!series) return base;
  const found = [
    apply.checkpatch_errors > 0 && count(apply.checkpatch_errors, "error"),
    apply.checkpatch_warnings > 0 && count(apply.checkpatch_warnings, "warning"),
  ].filter(Boolean);
  const checked = checkpatchText(found.join(", "), apply.checkpatch_skipped);
  return `${count(apply.patches, "patch", "patches")} on ${base}; checkpatch: ${checked}`;
}

/** Describe the state or result of a build. */
export function buildText(build: BuildStep): string {
  if (build.failure) return oneLine(build.failure.summary);
  if (build.state === "running") return oneLine(build.progress) || "Starting";
  if (build.state === "queued") return "Waiting for a builder";
  if (build.state === "waiting") return "Waiting for the source";
  const warnings =
    build.new_warnings > 0
      ? count(build.new_warnings, "new warning")
      : build.arm === "candidate"
        ? "no new warnings"
        : "";
  return [build.reused ? "reused" : oneLine(build.release), warnings].filter(Boolean).join(", ");
}

/** Describe what a run waits for, or its device. `why`: the reason given by the queue. */
export function waitText(run: RunStep, why: string): string {
  if (run.state === "waiting") return "Waiting for kernels";
  if (run.state === "queued") {
    const place = run.queue_position ? `position ${run.queue_position} in the queue` : "device offered";
    return why ? `${place}: ${why}` : place;
  }
  const again = run.attempts > 1 ? `, attempt ${run.attempts}` : "";
  return run.device ? `${run.device}${again}` : "no device";
}

/** Format a step's duration so far, `0:42`; empty if it has not started. */
export function elapsed(step: { started_at: string | null; finished_at: string | null }, now: Date): string {
  if (step.started_at === null) return "";
  const end = step.finished_at === null ? now.getTime() : Date.parse(step.finished_at);
  return duration((end - Date.parse(step.started_at)) / 1000);
}

export type CellState = "pending" | "booting" | "measuring" | "passed" | "failed" | "lost" | "not_needed";

export interface Cell {
  arm: Arm;
  state: CellState;
  /** Null before the boot. */
  boot: BootStep | null;
}

export const CELL_WORDS: Record<CellState, string> = {
  pending: "pending",
  booting: "booting",
  measuring: "measuring",
  passed: "passed",
  failed: "failed",
  lost: "not run",
  not_needed: "not needed",
};

/**
 * Return one cell per arm, in boot order, for the block's last attempt. `boots`: the block's entry in `bootsByBlock`.
 */
export function cellsOf(block: BlockStep, boots: readonly BootStep[]): Cell[] {
  return block.arms.map((arm, position) => {
    const boot = boots.find(each => each.attempt === block.attempt && each.position === position) ?? null;
    const without = block.state === "lost" || block.state === "not_needed" ? block.state : "pending";
    return { arm, boot, state: boot ? stateOf(boot) : without };
  });
}

/** Group a run's boots by block. */
export function bootsByBlock(boots: readonly BootStep[]): ReadonlyMap<number, readonly BootStep[]> {
  return Map.groupBy(boots, boot => boot.block);
}

function stateOf(boot: BootStep): CellState {
  if (boot.state !== "finished") return boot.state;
  return boot.outcome === "passed" ? "passed" : "failed";
}

/**
 * Name of an attempt, as in reports: `xfs-fsync on xeon-2s-1, block 1, candidate, attempt 2`. Attempts without a block
 * count from one.
 */
export function attemptName(attempt: AttemptView): string {
  if (attempt.what !== "run") {
    const what = attempt.build_id ? `build ${attempt.build_id}` : attempt.what;
    return `${what}${attempt.device ? ` by ${attempt.device}` : ""}, attempt ${attempt.attempt}`;
  }
  const parts = [`${attempt.plan} on ${attempt.device || attempt.device_type}`];
  if (attempt.block !== null) parts.push(`block ${attempt.block + 1}`, attempt.arm ?? "");
  parts.push(`attempt ${attempt.attempt + (attempt.block === null ? 0 : 1)}`);
  return parts.filter(Boolean).join(", ");
}

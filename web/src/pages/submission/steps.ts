/** What each step of a submission says of itself, and what a cell of a run's strip shows. */
import type { ApplyStep, Arm, AttemptView, BlockStep, BootStep, BuildStep, RunStep } from "@/api/types";
import { count } from "@/lib/numbers";
import { duration } from "@/lib/time";
import { oneLine } from "@/lib/words";

export const LETTER: Record<Arm, "A" | "B"> = { baseline: "A", candidate: "B" };

/** `3B`, `3B, attempt 2`: people count from one. */
export function bootName(boot: Pick<BootStep, "block" | "arm" | "attempt">): string {
  const again = boot.attempt > 0 ? `, attempt ${boot.attempt + 1}` : "";
  return `${boot.block + 1}${LETTER[boot.arm]}${again}`;
}

/** A submission without a series measures a tree's own kernel under several settings. */
export function hasSeries(runs: readonly RunStep[]): boolean {
  return runs.some(run => run.blocks.some(block => block.arms.includes("candidate")));
}

export function applyText(apply: ApplyStep, series: boolean): string {
  if (apply.failure) return oneLine(apply.failure.summary);
  if (apply.state === "running") return oneLine(apply.progress) || "begins";
  if (apply.state !== "finished") return "waits for a builder";
  const base = apply.base_commit
    ? `${apply.base_commit.slice(0, 12)}${apply.release ? ` (${oneLine(apply.release)})` : ""}`
    : "";
  if (!series) return base;
  const found = [
    apply.checkpatch_errors > 0 && count(apply.checkpatch_errors, "error"),
    apply.checkpatch_warnings > 0 && count(apply.checkpatch_warnings, "warning"),
  ].filter(Boolean);
  return `${count(apply.patches, "patch", "patches")} on ${base}; checkpatch: ${found.join(", ") || "clean"}`;
}

export function buildText(build: BuildStep): string {
  if (build.failure) return oneLine(build.failure.summary);
  if (build.state === "running") return oneLine(build.progress) || "begins";
  if (build.state === "queued") return "waits for a builder";
  if (build.state === "waiting") return "waits for its source";
  const warnings =
    build.new_warnings > 0
      ? count(build.new_warnings, "new warning")
      : build.arm === "candidate"
        ? "no new warning"
        : "";
  return [build.reused ? "reused, made earlier" : oneLine(build.release), warnings]
    .filter(Boolean)
    .join(", ");
}

/** Where a run is on its way to boots. `why`: what the queue says of it. */
export function waitText(run: RunStep, why: string): string {
  if (run.state === "waiting") return "waits for its kernels";
  if (run.state === "queued") {
    const place = run.queue_position ? `number ${run.queue_position} in the queue` : "offered a device";
    return why ? `${place}: ${why}` : place;
  }
  const again = run.attempts > 1 ? `, attempt ${run.attempts}` : "";
  return run.device ? `${run.device}${again}` : "no device";
}

/** How long a step took or takes, `0:42`; empty before it began. */
export function took(step: { started_at: string | null; finished_at: string | null }, now: Date): string {
  if (step.started_at === null) return "";
  const end = step.finished_at === null ? now.getTime() : Date.parse(step.finished_at);
  return duration((end - Date.parse(step.started_at)) / 1000);
}

export type CellState = "pending" | "booting" | "measuring" | "passed" | "failed" | "lost";

export interface Cell {
  arm: Arm;
  state: CellState;
  /** Null before it was booted. */
  boot: BootStep | null;
}

export const CELL_WORDS: Record<CellState, string> = {
  pending: "to come",
  booting: "booting",
  measuring: "measuring",
  passed: "passed",
  failed: "failed",
  lost: "will not come",
};

/** The boots of a block's last attempt, one cell for each arm in boot order. `boots`: the run's, by `bootsByBlock`. */
export function cellsOf(block: BlockStep, boots: readonly BootStep[]): Cell[] {
  return block.arms.map((arm, position) => {
    const boot = boots.find(each => each.attempt === block.attempt && each.position === position) ?? null;
    return { arm, boot, state: boot ? stateOf(boot) : block.state === "lost" ? "lost" : "pending" };
  });
}

export function bootsByBlock(boots: readonly BootStep[]): ReadonlyMap<number, readonly BootStep[]> {
  return Map.groupBy(boots, boot => boot.block);
}

function stateOf(boot: BootStep): CellState {
  if (boot.state !== "finished") return boot.state;
  return boot.outcome === "passed" ? "passed" : "failed";
}

/** `xfs-fsync on xeon-2s-1, block 1, candidate, attempt 2`, as the reports say it. A lost device's attempts start at one. */
export function attemptWhere(attempt: AttemptView): string {
  if (attempt.what !== "run") {
    const what = attempt.build_id ? `build ${attempt.build_id}` : attempt.what;
    return `${what}${attempt.device ? ` by ${attempt.device}` : ""}, attempt ${attempt.attempt}`;
  }
  const parts = [`${attempt.plan} on ${attempt.device || attempt.device_type}`];
  if (attempt.block !== null) parts.push(`block ${attempt.block + 1}`, attempt.arm ?? "");
  parts.push(`attempt ${attempt.attempt + (attempt.block === null ? 0 : 1)}`);
  return parts.filter(Boolean).join(", ");
}

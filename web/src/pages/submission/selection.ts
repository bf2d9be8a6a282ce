/**
 * Step of a submission shown in detail: the one in the URL, else the active one, else the failed one, else the newest
 * boot.
 */
import type { BootStep, BuildStep, RunStep, SubmissionSteps } from "@/api/types";
import type { SubmissionSearch } from "./search";

export type Selection =
  | { kind: "series" }
  | { kind: "build"; build: BuildStep }
  | {
      kind: "run";
      run: RunStep;
      /** Null before the first boot. */
      boot: BootStep | null;
      /** True if the URL names the boot; otherwise the newest boot is shown. */
      pinned: boolean;
    };

/** Search parameters that select a step. Selecting another step resets the log position. */
type Choice = Pick<SubmissionSearch, "step" | "build" | "run" | "boot" | "line" | "find">;
const NO_CHOICE: Choice = { step: "", build: null, run: null, boot: null, line: null, find: "" };

/** All runs, those of traced boots last. */
export function allRuns({ runs, traced_runs = [] }: SubmissionSteps): RunStep[] {
  return [...runs, ...traced_runs];
}

export function toSeries(): Choice {
  return { ...NO_CHOICE, step: "series" };
}

export function toBuild(build: number): Choice {
  return { ...NO_CHOICE, build };
}

export function toRun(run: number): Choice {
  return { ...NO_CHOICE, run };
}

export function toBoot(run: number, boot: number, line: number | null = null): Choice {
  return { ...NO_CHOICE, run, boot, line };
}

/** Return search parameters that permanently select the same step and boot. */
export function pinned(selection: Selection): Choice {
  if (selection.kind === "series") return toSeries();
  if (selection.kind === "build") return toBuild(selection.build.id);
  return selection.boot ? toBoot(selection.run.id, selection.boot.id) : toRun(selection.run.id);
}

/** Resolve search parameters to a step; unknown IDs fall back to the default. */
export function resolveSelection(search: Choice, steps: SubmissionSteps): Selection {
  return selectionFromSearch(search, steps) ?? defaultSelection(steps);
}

function selectionFromSearch(search: Choice, steps: SubmissionSteps): Selection | null {
  if (search.boot !== null) {
    for (const run of allRuns(steps)) {
      const boot = run.boots.find(each => each.id === search.boot);
      if (boot) return { kind: "run", run, boot, pinned: true };
    }
  }
  const run = allRuns(steps).find(each => each.id === search.run);
  if (run) return newestOf(run);
  const build = steps.builds.find(each => each.id === search.build);
  if (build) return { kind: "build", build };
  return search.step === "series" ? { kind: "series" } : null;
}

function defaultSelection(steps: SubmissionSteps): Selection {
  const { apply, builds } = steps;
  const runs = allRuns(steps);
  if (steps.submission.state === "finished") return finishedSelection(steps);
  if (apply.state !== "finished") return { kind: "series" };
  const measuring = runs.find(run => run.state === "running");
  if (measuring) return newestOf(measuring);
  const building =
    builds.find(build => build.state === "running") ?? builds.find(build => build.state !== "finished");
  if (building) return { kind: "build", build: building };
  const next = runs.find(run => run.state !== "finished") ?? runs.at(-1);
  return next ? newestOf(next) : { kind: "series" };
}

function finishedSelection({ apply, builds, runs }: SubmissionSteps): Selection {
  if (apply.outcome === "failed") return { kind: "series" };
  const build = builds.find(each => each.outcome === "failed");
  if (build) return { kind: "build", build };
  const failed = runs.find(each => each.outcome === "failed");
  if (failed) {
    const boot = failed.boots.findLast(each => each.failure !== null) ?? failed.boots.at(-1) ?? null;
    return { kind: "run", run: failed, boot, pinned: false };
  }
  const first = runs[0];
  return first ? newestOf(first) : { kind: "series" };
}

function newestOf(run: RunStep): Selection {
  return { kind: "run", run, boot: run.boots.at(-1) ?? null, pinned: false };
}

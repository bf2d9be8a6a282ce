/** What of a submission is looked at: what the address says, else what goes on, else what failed, else the newest boot. */
import type { BootStep, BuildStep, RunStep, SubmissionSteps } from "@/api/types";
import type { submissionSearch } from "./route";

export type SubmissionSearch = typeof submissionSearch.defaults;

export type Selection =
  | { kind: "series" }
  | { kind: "build"; build: BuildStep }
  | {
      kind: "run";
      run: RunStep;
      /** Null before the first boot. */
      boot: BootStep | null;
      /** Whether the address names the boot; otherwise the newest one is shown, whichever that is. */
      pinned: boolean;
    };

/** The parts of an address that choose; all else about a log belongs to what was chosen before. */
type Choice = Pick<SubmissionSearch, "step" | "build" | "run" | "boot" | "line" | "find">;
const NOTHING: Choice = { step: "", build: null, run: null, boot: null, line: null, find: "" };

export function toSeries(): Choice {
  return { ...NOTHING, step: "series" };
}

export function toBuild(build: number): Choice {
  return { ...NOTHING, build };
}

export function toRun(run: number): Choice {
  return { ...NOTHING, run };
}

export function toBoot(run: number, boot: number, line: number | null = null): Choice {
  return { ...NOTHING, run, boot, line };
}

/** The address that shows the same for ever, whatever goes on meanwhile. */
export function pinned(selection: Selection): Choice {
  if (selection.kind === "series") return toSeries();
  if (selection.kind === "build") return toBuild(selection.build.id);
  return selection.boot ? toBoot(selection.run.id, selection.boot.id) : toRun(selection.run.id);
}

export function selected(search: Choice, steps: SubmissionSteps): Selection {
  return named(search, steps) ?? ofItself(steps);
}

function named(search: Choice, steps: SubmissionSteps): Selection | null {
  if (search.boot !== null) {
    for (const run of steps.runs) {
      const boot = run.boots.find(each => each.id === search.boot);
      if (boot) return { kind: "run", run, boot, pinned: true };
    }
  }
  const run = steps.runs.find(each => each.id === search.run);
  if (run) return newestOf(run);
  const build = steps.builds.find(each => each.id === search.build);
  if (build) return { kind: "build", build };
  return search.step === "series" ? { kind: "series" } : null;
}

function ofItself(steps: SubmissionSteps): Selection {
  const { apply, builds, runs } = steps;
  if (steps.submission.state === "finished") return whyItEnded(steps);
  if (apply.state !== "finished") return { kind: "series" };
  const measuring = runs.find(run => run.state === "running");
  if (measuring) return newestOf(measuring);
  const building =
    builds.find(build => build.state === "running") ?? builds.find(build => build.state !== "finished");
  if (building) return { kind: "build", build: building };
  const next = runs.find(run => run.state !== "finished") ?? runs.at(-1);
  return next ? newestOf(next) : { kind: "series" };
}

function whyItEnded({ apply, builds, runs }: SubmissionSteps): Selection {
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

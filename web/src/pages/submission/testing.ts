/** Factories for API responses, for the tests in this folder. */
import type { Arm, BlockStep, BootStep, BuildStep, RunStep, SubmissionSteps } from "@/api/types";

const job = {
  state: "finished",
  outcome: "passed",
  failure: null,
  attempts: 1,
  holder: "host/1",
  progress: "",
  progress_done: 0,
  progress_total: 0,
  created_at: "2026-11-21T10:00:00Z",
  started_at: "2026-11-21T10:00:05Z",
  finished_at: "2026-11-21T10:01:05Z",
} as const;

export function bootOf(id: number, block: number, arm: Arm, rest: Partial<BootStep> = {}): BootStep {
  return {
    id,
    block,
    position: arm === "baseline" ? 0 : 1,
    arm,
    attempt: 0,
    device: "tiny-1",
    state: "finished",
    outcome: "passed",
    valid: true,
    failure: null,
    findings: 0,
    started_at: "2026-11-21T10:02:00Z",
    verified_at: "2026-11-21T10:02:30Z",
    finished_at: "2026-11-21T10:04:00Z",
    console_bytes: 20_000,
    console_truncated: false,
    ...rest,
  };
}

export function blockOf(block: number, rest: Partial<BlockStep> = {}): BlockStep {
  return { block, arms: ["baseline", "candidate"], state: "completed", attempt: 0, discarded: 0, ...rest };
}

export function runOf(id: number, rest: Partial<RunStep> = {}): RunStep {
  return {
    ...job,
    id,
    target: 0,
    plan: "xfs-fsync",
    device_type: "tiny",
    emulated: true,
    device: "tiny-1",
    queue_position: null,
    done_boots: 2,
    total_boots: 2,
    blocks: [blockOf(0)],
    looks: [],
    looked: [],
    boots: [],
    findings: [],
    devices: [],
    ...rest,
  };
}

export function buildOf(id: number, arm: Arm, rest: Partial<BuildStep> = {}): BuildStep {
  return {
    ...job,
    id,
    arm,
    recipe: "measure",
    arch: "x86_64",
    emulated: true,
    reused: false,
    release: "6.12.0-wqlab",
    build_id_gnu: "ab".repeat(20),
    new_warnings: 0,
    has_log: true,
    ...rest,
  };
}

export function stepsOf(rest: Partial<SubmissionSteps> = {}): SubmissionSteps {
  return {
    submission: {
      id: 3,
      title: "workqueue: less locking",
      author: "A. Hacker",
      version: 1,
      series_key: "workqueue: less locking",
      tree: "mainline",
      owner: "alice",
      priority: 0,
      state: "running",
      outcome: null,
      failure: null,
      verdicts: {},
      modelled_verdicts: {},
      retry_of: null,
      targets: [],
      done_boots: 0,
      total_boots: 2,
      created_at: "2026-11-21T10:00:00Z",
      finished_at: null,
      pinned_at: null,
      pinned_by: null,
    },
    at: "2026-11-21T10:05:00Z",
    event_seq: 7,
    cancel_requested_at: null,
    exit_code: null,
    eta: { done_boots: 0, total_boots: 2, finish_at: null, what: "" },
    apply: {
      ...job,
      base_commit: "1a2b3c4d5e6f7081",
      release: "6.12.1",
      patches: 2,
      checkpatch_errors: 0,
      checkpatch_warnings: 0,
      thread: null,
      checkpatch_skipped: "",
    },
    builds: [buildOf(11, "baseline"), buildOf(12, "candidate")],
    runs: [runOf(21)],
    traced_runs: [],
    attempts: [],
    ...rest,
  };
}

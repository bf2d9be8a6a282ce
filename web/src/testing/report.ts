/** Generated reports of any size for tests. Their figures are made up; no statistics are computed. */
import type { ArmSummary, BootValue, Comparison, Evidence, Metric, Report, TargetReport } from "@/api/types";
import { effectUnitOf } from "@/lib/numbers";

export interface Device {
  name: string;
  emulated?: boolean;
}

export interface ReportShape {
  devices?: readonly Device[];
  scenarios?: readonly string[];
  /** The first setting is the reference. */
  settings?: readonly string[];
  /** Number of metrics besides `locality` and `busy`, the metrics of the trade-off. */
  counters?: number;
  blocks?: number;
  /** The questions to generate comparisons for. */
  questions?: readonly ("kernel" | "setting")[];
}

const METRIC: Omit<Metric, "name" | "summary" | "unit" | "class"> = {
  scale: "difference",
  direction: "higher_is_better",
  taken_from: "traced",
  role_hardware: "secondary",
  role_emulated: "secondary",
  delta: 0.5,
  emulator_delta: null,
  depends_on: "",
};

export function makeReport({
  devices = [{ name: "xeon-2s" }, { name: "tiny", emulated: true }],
  scenarios = ["HIGH", "LOW"],
  settings = ["scope=system", "scope=cache"],
  counters = 2,
  blocks = 6,
  questions = ["kernel", "setting"],
}: ReportShape = {}): Report {
  const metrics: Metric[] = [
    {
      ...METRIC,
      name: "locality",
      summary: "Work that ran where it was queued",
      unit: "%",
      class: "mechanism",
      role_emulated: "primary",
    },
    {
      ...METRIC,
      name: "busy",
      summary: "Busy share of all CPUs",
      unit: "%",
      class: "performance",
      role_hardware: "primary",
    },
    ...Array.from(
      { length: counters },
      (_, at): Metric => ({
        ...METRIC,
        name: `counter-${at}`,
        summary: `Counter ${at}`,
        unit: "times",
        class: "mechanism",
        role_hardware: "explanatory",
        role_emulated: "explanatory",
      }),
    ),
  ];
  const targets = devices.map((device, at) =>
    target(device, at + 1, { scenarios, settings, metrics, blocks, questions }),
  );
  return {
    diff: "",
    submission: {
      id: 7,
      title: "workqueue: Fewer locks",
      author: "Ada <ada@example.org>",
      version: 1,
      series_key: "workqueue: fewer locks",
      tree: "linux-6.12",
      owner: "ada",
      priority: 50,
      state: "finished",
      outcome: "passed",
      failure: null,
      verdicts: {},
      modelled_verdicts: {},
      retry_of: null,
      targets: [],
      done_boots: 0,
      total_boots: 0,
      created_at: "2026-03-14T15:00:00Z",
      finished_at: "2026-03-14T15:09:00Z",
      request: {
        series: {
          commits: null,
          git: { url: "https://git.example.org/linux.git", ref: "wq" },
          mbox: null,
          thread: null,
        },
        tree: "linux-6.12",
        targets: [],
        blocks: null,
        repetitions: null,
        looks: null,
        priority: 50,
        recipe: null,
        backend: null,
        force: false,
        walk: false,
        layouts: 1,
        trace: true,
        sweep: null,
      },
      apply: {
        state: "finished",
        outcome: "passed",
        failure: null,
        base_commit: "c0ffee0000000000000000000000000000000000",
        release: "6.12.117",
        patches: [],
        checkpatch: [],
        checkpatch_skipped: "",
        prior_art: null,
        base_package: "",
        series_mbox: null,
        thread: null,
        files_deleted_at: null,
      },
      builds: [],
      runs: [],
      traced_runs: [],
      eta: { finish_at: null, what: "finished", done_boots: 0, total_boots: 0 },
      pinned_at: null,
      pinned_by: null,
      exit_code: 0,
    },
    generated_at: "2026-03-14T15:09:00Z",
    lab_url: "http://lab.example",
    summary: "Better: bandwidth +7.1 % on xeon-2s. Can't tell yet on tiny (emulated).",
    targets,
    sweep: null,
    failed_at: [],
    attempts: [],
    config_diff: [],
    config_compared: true,
    config_sha256: "",
    method: "n counts boots.",
  };
}

type Parts = Required<Omit<ReportShape, "devices" | "counters">> & { metrics: Metric[] };

function target({ name, emulated = false }: Device, run: number, parts: Parts): TargetReport {
  const { scenarios, settings, metrics, blocks, questions } = parts;
  const reference = settings[0] as string;
  const comparisons: Comparison[] = [];
  const values: BootValue[] = [];
  for (const scenario of scenarios) {
    for (const metric of metrics) {
      const evidence = evidenceOf(metric, emulated);
      const role = (emulated ? metric.role_emulated : metric.role_hardware) ?? "explanatory";
      const base = {
        plan: "affinity",
        device_type: name,
        scenario,
        metric: metric.name,
        unit: metric.unit,
        effect_unit: effectUnitOf(metric),
      } as const;
      for (const [at, setting] of settings.entries()) {
        const compared = {
          ...base,
          setting,
          role,
          evidence,
          scale: metric.scale,
          direction: metric.direction,
        };
        if (questions.includes("kernel"))
          comparisons.push({
            ...compared,
            ...results(evidence, role, blocks, at),
            question: "kernel",
            reference: "baseline",
            kernel: null,
          });
        for (const kernel of questions.includes("setting") && at > 0
          ? (["baseline", "candidate"] as const)
          : [])
          comparisons.push({
            ...compared,
            ...results(evidence, role, blocks, at),
            question: "setting",
            reference,
            kernel,
          });
        for (const arm of ["baseline", "candidate"] as const)
          for (let block = 0; block < blocks; block++)
            values.push({
              arm,
              block,
              scenario,
              setting,
              metric: metric.name,
              value: 40 + 20 * at + block / 10,
            });
      }
    }
  }
  return {
    run_id: run,
    ladder: null,
    layouts: 1,
    explanation: null,
    ran: null,
    plan: {
      name: "affinity",
      summary: "Does work run where it was queued",
      script: "run.sh",
      files_of: null,
      modules: [],
      fragments: [],
      parser: "values",
      scenarios: scenarios.map(each => ({ name: each, summary: `${each} load`, parameters: {} })),
      axes: [],
      reference_setting: reference,
      hardware: {
        scenarios: null,
        settings: [...settings],
        blocks,
        looks: [],
        measure_timeout_s: 300,
        parameters: {},
        from_cpus: {},
        spreads: {},
        repetitions: { warmup: 1, warmup_most: null, untraced: 5, traced: 1 },
      },
      emulated: {
        scenarios: null,
        settings: [...settings],
        blocks,
        looks: [],
        measure_timeout_s: 300,
        parameters: {},
        from_cpus: {},
        spreads: {},
        repetitions: { warmup: 0, warmup_most: null, untraced: 1, traced: 1 },
      },
      instrumented: null,
      modelled: null,
      operations: null,
      metrics,
      references: [],
      tradeoff: { locality: "locality", work_conservation: "busy" },
      curve: null,
      checks_health: false,
    },
    device_type: name,
    device_summary: "",
    emulated,
    declared_topology: {
      sockets: 1,
      l3_per_socket: 2,
      cores_per_l3: 2,
      threads_per_core: 1,
      numa_nodes: 1,
      numbering: "contiguous",
      clusters: [],
    },
    outcome: "passed",
    failure: null,
    verdict: emulated ? "inconclusive" : "improvement",
    headline: "busy +1.50 points",
    reasons: [],
    comparisons,
    environment: null,
    values,
    curves: [],
    workqueues: workqueues({ name, emulated }),
    waits: waits({ name, emulated }),
    instrument: [],
    noise_floors: [],
    canaries: [],
    references: [],
    unsupported: [],
    findings: [],
    byte_identical: false,
    blocks_planned: blocks,
    blocks_completed: blocks,
    looks: [],
    looked: [],
    discarded: {},
    discarded_by_lab: 0,
    overhead_s: null,
  };
}

function evidenceOf(metric: Metric, emulated: boolean): Evidence {
  return metric.class === "mechanism" ? "mechanism" : emulated ? "none" : "performance";
}

/** Made-up results of a comparison; without evidence only the means of the arms, as the API sends them. */
function results(evidence: Evidence, role: Comparison["role"], n: number, at: number) {
  const arm = (mean: number): ArmSummary => ({
    mean,
    stddev: evidence === "none" ? null : 0.25,
    n,
    modes: null,
  });
  const common = {
    p: null,
    p_adjusted: null,
    p_student: null,
    not_measured: null,
    not_validated: "",
    blocks_needed: null,
    blocks_discarded: 0,
    patch: null,
    exact: false,
  };
  if (evidence === "none")
    return {
      ...common,
      baseline: arm(62.5),
      candidate: arm(71.25 + at),
      effect: null,
      ci95: null,
      delta: null,
      verdict: "no_evidence" as const,
      reason: "",
    };
  return {
    ...common,
    baseline: arm(40),
    candidate: arm(41.5 + at),
    effect: 1.5 + at,
    ci95: [1.25 + at, 1.75 + at] as [number, number],
    delta: 0.5,
    verdict: role === "explanatory" ? null : ("improvement" as const),
    reason: role === "explanatory" ? "" : "p .0312; at least 0.5 points",
  };
}

function waits({ emulated = false }: Device): TargetReport["waits"] {
  if (!emulated) return [];
  const work = (name: string, arm: "baseline" | "candidate", items: number) => ({
    function: name,
    arm,
    items,
    p50_us: 64,
    p99_us: 16_384,
    same_cpu: 12.5,
    same_l3: 25,
    same_node: null,
  });
  return [
    {
      scenario: "HIGH",
      setting: "scope=system",
      repetitions: { baseline: 6, candidate: 6 },
      works: ["kcryptd_crypt", "vmstat_update"].flatMap((name, at) => [
        work(name, "baseline", 747 - 700 * at),
        work(name, "candidate", 742.5 - 700 * at),
      ]),
      functions: 9,
      notes: ["baseline: a histogram was full: 3 events are not counted"],
    },
  ];
}

function workqueues({ emulated = false }: Device): TargetReport["workqueues"] {
  if (!emulated) return [];
  const series = (workqueue: string, arm: "baseline" | "candidate", rate: number) => ({
    arm,
    block: 0,
    workqueue,
    points: Array.from({ length: 6 }, (_, at): [number, number] => [at + 1, rate * (1 + (at % 3))]),
    totals: { started: 12 * rate, completed: 12 * rate },
    in_flight_max: 3,
  });
  return [
    {
      scenario: "HIGH",
      setting: "scope=system",
      phase: "traced",
      source: "tracepoints",
      series: ["kcryptd-253:0-1", "events"].flatMap((name, at) => [
        series(name, "baseline", 40 - 30 * at),
        series(name, "candidate", 50 - 30 * at),
      ]),
      notes: ["baseline: CPU time is not measured: no wqmon on this device"],
    },
  ];
}

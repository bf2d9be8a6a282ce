/** Example counts of an instrumented device for tests: made up, with two L3 domains of two CPUs. */
import type { InstrumentCell, TargetReport } from "@/api/types";

type Counts = {
  transfers: number;
  across_l3: number;
  instructions: number;
  locked: number;
  virtual_ns: number;
};

function counts(transfers: number, instructions: number): Counts {
  return { transfers, across_l3: transfers / 4, instructions, locked: 1, virtual_ns: 0 };
}

function change(name: string, file: string, before: Counts, after: Counts, seeds: number) {
  const folder = file.split("/").slice(0, -1).slice(0, 2).join("/");
  return {
    ...subsystem(folder === "kernel" ? file : folder, before, after, seeds),
    name,
    subsystem: folder === "kernel" ? file : folder,
    file,
    touched: name === "flush_workqueue_prep_pwqs",
  };
}

function subsystem(name: string, before: Counts, after: Counts, seeds: number) {
  return {
    name,
    per_op: { baseline: before, candidate: after },
    instruction_seeds: seeds,
    transfer_seeds: seeds,
  };
}

export function makeInstrumentCell(): InstrumentCell {
  const functions = [
    change("flush_workqueue_prep_pwqs", "kernel/workqueue.c", counts(40, 2000), counts(12, 1500), 6),
    change("process_one_work", "kernel/workqueue.c", counts(2, 4000), counts(1, 4400), 3),
    change("xfs_file_fsync", "fs/xfs/xfs_file.c", counts(1, 2600), counts(1, 2600), 0),
    change("(other)", "kernel/workqueue.c", counts(1, 9000), counts(1, 9000), 0),
    change("(other)", "fs/xfs/xfs_log.c", counts(2, 21_000), counts(2, 21_000), 0),
    { ...change("(other)", "", counts(1, 20_000), counts(1, 20_000), 0), subsystem: "fs/xfs" },
    change("(other)", "", counts(3, 40_000), counts(3, 40_000), 0),
  ];
  return {
    scenario: "fsync",
    setting: "",
    operation: "fsync",
    seeds: [0, 1, 2, 3, 4, 5],
    emulator: "QEMU 7.2.22",
    plugin: "5e",
    topology: [0, 1, 0, 1].map((l3, cpu) => ({ core: cpu, l3, node: 0 })),
    totals: { baseline: counts(50, 98_600), candidate: counts(21, 98_500) },
    kernel: subsystem("kernel", counts(49, 88_600), counts(20, 88_500), 6),
    subsystems: [
      subsystem("kernel/workqueue.c", counts(43, 15_000), counts(14, 14_900), 6),
      subsystem("fs/xfs", counts(4, 43_600), counts(4, 43_600), 0),
      subsystem("user space", counts(1, 10_000), counts(1, 10_000), 0),
      subsystem("", counts(1, 5000), counts(1, 5000), 0),
      subsystem("(other)", counts(1, 25_000), counts(1, 25_000), 0),
    ],
    functions,
    changed: functions.slice(0, 2),
    spins: [],
    pairs: [
      {
        taker: "flush_workqueue_prep_pwqs",
        taker_line: "kernel/workqueue.c:3991",
        taker_source: "raw_spin_lock_irq(&pool->lock);",
        writer: "try_to_wake_up",
        writer_line: "kernel/sched/core.c:4100",
        writer_source: "",
        kind: "store",
        per_op: { baseline: { transfers: 34, across_l3: 9 }, candidate: { transfers: 4, across_l3: 1 } },
        seeds: 6,
      },
    ],
    lines: [
      {
        symbol: "unbound worker_pool + 0x40",
        addresses: 1,
        per_op: { baseline: { transfers: 34, across_l3: 9 }, candidate: { transfers: 4, across_l3: 1 } },
        seeds: 6,
      },
      {
        symbol: "pool_workqueue cache + 0x80",
        addresses: 4,
        per_op: { baseline: { transfers: 8, across_l3: 2 }, candidate: { transfers: 5, across_l3: 1 } },
        seeds: 6,
      },
    ],
    cpus: {
      baseline: [
        [0, 1, 4, 0],
        [1, 0, 0, 4],
        [4, 0, 0, 1],
        [0, 4, 1, 0],
      ],
      candidate: [
        [0, 1, 1, 0],
        [1, 0, 0, 4],
        [4, 0, 0, 2],
        [0, 4, 1, 0],
      ],
    },
    sentences: ["50.0 -> 21.0 cache lines move per fsync"],
    notes: ["one boot is missing"],
  };
}

/** Return the target as it would be on an instrumented device. */
export function instrumented(target: TargetReport): TargetReport {
  const [metric] = target.plan.metrics;
  if (!metric) throw new Error("the plan has no metric");
  const counted = {
    ...metric,
    name: "kernel_instructions_per_op",
    class: "instrumented",
    role_emulated: "primary",
  } as const;
  return {
    ...target,
    emulated: true,
    plan: { ...target.plan, metrics: [counted], tradeoff: null },
    comparisons: target.comparisons
      .filter(of => of.metric === metric.name)
      .map(of => ({
        ...of,
        metric: counted.name,
        effect_unit: "%",
        role: "primary",
        evidence: "instrumented",
      })),
    instrument: [makeInstrumentCell()],
  };
}

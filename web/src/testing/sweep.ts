/** Example results of a sweep for tests: made up. */
import type { SweepCurve, SweepPoint, SweepReport } from "@/api/types";

function point(value: number, change: Partial<SweepPoint>): SweepPoint {
  return {
    value,
    device_type: `instrumented-16c-${value}l3-1n`,
    run_id: 20 + value,
    verdict: null,
    effect: null,
    ci95: null,
    exact: false,
    baseline: null,
    candidate: null,
    seeds: 0,
    noise_floor: null,
    reason: "",
    ...change,
  };
}

export function makeSweepCurve(change: Partial<SweepCurve> = {}): SweepCurve {
  return {
    plan: "xfs-fsync",
    scenario: "fsync",
    setting: "",
    question: "kernel",
    reference: "baseline",
    kernel: null,
    metric: "kernel_instructions_per_op",
    unit: "instructions",
    effect_unit: "%",
    direction: "lower_is_better",
    role: "primary",
    evidence: "instrumented",
    delta: 0.2,
    points: [
      point(1, { verdict: "equivalent", effect: 0, exact: true, seeds: 6 }),
      point(2, { verdict: "equivalent", effect: 0.01, ci95: [-0.05, 0.08], seeds: 6 }),
      point(4, {
        verdict: "improvement",
        effect: -1.1,
        ci95: [-1.2, -1.05],
        seeds: 6,
        noise_floor: 0.031,
        baseline: 2000,
        candidate: 1978,
      }),
      point(8, { verdict: "failed", reason: "the candidate showed a panic" }),
    ],
    sentence: "no clear crossover: better at 4 L3 domains, the same at 1 and 2, failed at 8",
    ...change,
  };
}

export function makeSweep(curves = [makeSweepCurve()]): SweepReport {
  return { vary: "l3", title: "1, 2, 4 and 8 L3 domains; 16 CPUs, 1 NUMA node", axis: "L3 domains", curves };
}

import { expect, test } from "vitest";
import type { Comparison, Environment, Metric, TargetReport } from "@/api/types";
import { instrumented, makeInstrumentCell } from "@/testing/instrument";
import { makeReport } from "@/testing/report";
import {
  costsOf,
  deviceKind,
  lineName,
  noiseFloorOf,
  noiseNote,
  perOperation,
  subsystemRows,
} from "./instrumented";

const [hardware, emulated] = makeReport().targets as [TargetReport, TargetReport];
const counted = instrumented(emulated);
const [anyMetric] = counted.plan.metrics as [Metric];
const modelled = {
  ...counted,
  plan: { ...counted.plan, metrics: [{ ...anyMetric, class: "modelled" as const }, ...counted.plan.metrics] },
};

test("each kind of device has its name", () => {
  expect([hardware, emulated, counted, modelled].map(deviceKind)).toEqual([
    "",
    "emulated",
    "instrumented",
    "modelled",
  ]);
});

test("a modelled target names its costs", () => {
  const facts = { "cost profile": `ryzen-3900x sha256:1a2b3c4d5e6f${"0".repeat(52)}` };
  const environment = { ...(emulated.environment as Environment), facts };
  expect(costsOf({ environment })).toBe("modelled on ryzen-3900x costs (sha256:1a2b3c4d5e6f)");
  expect(costsOf({ environment: null })).toBe("modelled on unknown costs");
});

test("a noise floor of a modelled share has its unit", () => {
  const [of] = modelled.comparisons as [Comparison];
  const floor = { floor: 0.4, seeds: 6, seeds_needed: 6, measured_at: "2026-03-01T00:00:00Z" };
  const share = { ...of, question: "kernel" as const, role: "primary" as const, effect_unit: "points" };
  const { scenario, setting, metric } = share;
  const measured = { ...modelled, noise_floors: [{ scenario, setting, metric, ...floor }] };
  expect(noiseFloorOf(measured, { ...share, evidence: "modelled" })).toBe("noise floor 0.4 points");
  expect(noiseFloorOf(measured, { ...share, evidence: "performance" })).toBe("");
});

test("a noise floor that was not measured is said to be so", () => {
  expect(noiseNote(counted)).toMatch(/^Noise floor: not measured/);
});

test("a noise floor has its value beside the verdict", () => {
  const floors = counted.comparisons.map(({ scenario, setting, metric }) => ({
    scenario,
    setting,
    metric,
    floor: 0.03123,
    seeds: 8,
    seeds_needed: 6,
    measured_at: "2026-03-01T00:00:00Z",
  }));
  const measured = { ...counted, noise_floors: floors };
  expect(noiseNote(measured)).toContain("measured with 8 seeds");
});

test("a count has about three significant digits, as in the mail", () => {
  expect([268412.4, 41.04, 1.236, 0.05, 0].map(perOperation)).toEqual([
    "268412",
    "41.0",
    "1.24",
    "0.0500",
    "0",
  ]);
});

test("kernel and user space come before the subsystems of the kernel", () => {
  expect(subsystemRows(makeInstrumentCell()).map(of => of.name)).toEqual([
    "whole kernel",
    "user space",
    "kernel/workqueue.c",
    "fs/xfs",
    "source not known",
    "other subsystems",
  ]);
  expect(subsystemRows({ kernel: null, subsystems: [] })).toEqual([]);
});

test("data that several cache lines have is said to be so", () => {
  expect(makeInstrumentCell().lines.map(lineName)).toEqual([
    "unbound worker_pool + 0x40",
    "pool_workqueue cache + 0x80 (up to 4 lines)",
  ]);
});

import { expect, test } from "vitest";
import type { AttemptView, Failure, FindingView, Report, TargetReport } from "@/api/types";
import {
  appliesMethod,
  appliesRebuilding,
  failedTarget,
  otherAttempts,
  otherFindings,
  shownComparisons,
} from "./failures";

const defect = "oops: BUG: NULL in flush_one@kernel/workqueue.c:7";
const failure: Failure = {
  kind: "kernel",
  summary: "oops: BUG: NULL",
  excerpt: "BUG: NULL",
  advice: "",
  of_variant: false,
  stack: [],
  defect,
};

function finding(more: Partial<FindingView>): FindingView {
  return {
    kind: "oops",
    arm: "candidate",
    block: 0,
    attempt: 0,
    title: "BUG: NULL",
    excerpt: "BUG: NULL",
    console_offset: 0,
    fatal: true,
    stack: [],
    defect,
    ...more,
  };
}

const findings = [
  finding({}),
  finding({ kind: "panic", title: "Fatal exception", excerpt: "", defect: "panic" }),
  finding({ kind: "warning", title: "WARNING: at f", excerpt: "", fatal: false, defect: "warning" }),
  finding({
    kind: "warning",
    title: "WARNING: at f",
    excerpt: "",
    fatal: false,
    defect: "warning",
    attempt: 1,
  }),
];

function reportOf(main: Failure | null): Report {
  const target = {
    plan: { name: "xfs-fsync" },
    device_type: "tiny",
    verdict: "failed",
    headline: "the candidate showed oops in 2 of 2 boots: BUG: NULL; the baseline came through 2 of 2 boots",
    failure,
    findings,
    environment: null,
    comparisons: [{ baseline: { mean: 33 }, candidate: null, verdict: "failed", evidence: "mechanism" }],
  } as unknown as TargetReport;
  const attempts = [
    { failure },
    {
      failure: {
        kind: "infrastructure",
        summary: "no power",
        excerpt: "",
        advice: "",
        of_variant: false,
        stack: [],
        defect: "",
      },
    },
  ] as AttemptView[];
  return { targets: [target], attempts, submission: { failure: main } } as unknown as Report;
}

test("the failure is stated once", () => {
  const report = reportOf(failure);
  const [target] = report.targets as [TargetReport];
  expect(failedTarget(report)).toBe(target);
  expect(otherAttempts(report).map(each => each.failure.summary)).toEqual(["no power"]);
  expect(otherFindings(findings, failure)).toEqual([findings[2]]);
  expect(shownComparisons(report, target)).toEqual([]);
  expect(appliesMethod(report)).toBe(false);
  expect(appliesRebuilding(report)).toBe(true);
});

test("a report without a failure is complete", () => {
  const report = reportOf(null);
  expect(otherAttempts(report)).toHaveLength(2);
  expect(shownComparisons(report, report.targets[0] as TargetReport)).toHaveLength(1);
  expect(appliesMethod(report)).toBe(true);
});

import { expect, test } from "vitest";
import type { Comparison, Report } from "@/api/types";
import { makeReport } from "@/testing/report";
import { claimsOf } from "./claims";
import { cellsOf, firstCell } from "./model";

const SHAPE = { questions: ["kernel"], scenarios: ["HIGH"], settings: [""], counters: 2 } as const;

/** A report whose comparisons are changed one by one. */
function reportWith(change: (of: Comparison) => Partial<Comparison>): Report {
  const report = makeReport(SHAPE);
  return {
    ...report,
    targets: report.targets.map(target => ({
      ...target,
      comparisons: target.comparisons.map(of => ({ ...of, ...change(of) })),
    })),
  };
}

const counts = (report: Report) => {
  const { worse, better, open } = claimsOf(report, cellsOf(report));
  return { worse: worse.length, better: better.length, open: open.length };
};

test("a regression of a secondary metric is a claim, and is the comparison that is shown", () => {
  const report = reportWith(of => ({
    verdict:
      of.role === "explanatory" || of.evidence === "none"
        ? null
        : of.role === "primary"
          ? "equivalent"
          : "regression",
  }));
  const claims = claimsOf(report, cellsOf(report));
  expect(claims.worse.length).toBeGreaterThan(0);
  expect(claims.worse.every(({ of }) => of.role === "secondary")).toBe(true);
  expect(firstCell(cellsOf(report))?.of.verdict).toBe("regression");
  expect(claims.decided).toBe(claims.judged);
});

test("what is not decided is open", () => {
  const found = counts(
    reportWith(of => ({ verdict: of.evidence === "none" ? "no_evidence" : "inconclusive" })),
  );
  expect(found).toMatchObject({ worse: 0, better: 0 });
  expect(found.open).toBeGreaterThan(0);
});

test("a setting that is worse is no claim", () => {
  const report = makeReport({ ...SHAPE, questions: ["setting"], settings: ["scope=system", "scope=cache"] });
  for (const target of report.targets)
    for (const of of target.comparisons) of.verdict = of.verdict === null ? null : "regression";
  expect(counts(report).worse).toBe(0);
});

test("a canceled target is not measured, a kernel that fails is a failure", () => {
  const report = makeReport(SHAPE);
  const [first, second] = report.targets;
  if (!first || !second) throw new Error("the report has two targets");
  const failure = {
    kind: "canceled" as const,
    summary: "canceled by its owner",
    excerpt: "",
    advice: "",
    stack: [],
    defect: "",
    of_variant: false,
  };
  report.targets = [
    { ...first, verdict: "inconclusive", failure },
    { ...second, verdict: "failed", failure: null },
  ];
  const { failed, missing } = claimsOf(report, cellsOf(report));
  expect(missing.map(target => target.run_id)).toEqual([first.run_id]);
  expect(failed.map(target => target.run_id)).toEqual([second.run_id]);
});

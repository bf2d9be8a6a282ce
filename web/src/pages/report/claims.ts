/** What a report claims: better, worse, open, and not measured. Groups the server's verdicts; it computes none. */
import type { Report, TargetReport } from "@/api/types";
import type { Cell } from "./model";

export interface Claims {
  worse: Cell[];
  better: Cell[];
  /** Judged comparisons that are not decided. */
  open: Cell[];
  /** Number of judged comparisons, and of those that are decided. */
  judged: number;
  decided: number;
  /** Targets whose kernel failed. */
  failed: TargetReport[];
  /** Targets without a verdict for a reason that is no kernel's. */
  missing: TargetReport[];
  /** Metrics whose values are no evidence on any device of the report. */
  values: string[];
}

/** Return the claims about the kernels; of a study those about its settings, where a worse setting is no claim. */
export function claimsOf(report: Report, cells: readonly Cell[]): Claims {
  const study = !cells.some(({ of }) => of.question === "kernel");
  const asked = cells.filter(({ of }) => study || of.question === "kernel");
  const judged = asked.filter(({ of }) => of.role !== "explanatory" && of.evidence !== "none" && of.verdict);
  const open = judged.filter(({ of }) => of.verdict === "inconclusive" || of.verdict === "withheld");
  const evident = new Set(asked.filter(({ of }) => of.evidence !== "none").map(({ of }) => of.metric));
  const notKernel = ({ failure }: TargetReport) => failure != null && failure.kind !== "kernel";
  return {
    worse: study ? [] : bySize(judged.filter(({ of }) => of.verdict === "regression")),
    better: bySize(judged.filter(({ of }) => of.verdict === "improvement")),
    open: bySize(open),
    judged: judged.length,
    decided: judged.filter(({ of }) =>
      ["improvement", "regression", "equivalent", "below_threshold"].includes(of.verdict ?? ""),
    ).length,
    failed: report.targets.filter(target => target.verdict === "failed" && !notKernel(target)),
    missing: report.targets.filter(
      target => notKernel(target) && (target.verdict === "failed" || target.verdict === "inconclusive"),
    ),
    values: [
      ...new Set(
        asked
          .filter(({ of }) => of.evidence === "none" && of.role !== "explanatory" && !evident.has(of.metric))
          .map(({ of }) => of.metric),
      ),
    ],
  };
}

/** Primary metrics first, then the largest effects. */
function bySize(cells: readonly Cell[]): Cell[] {
  const size = ({ of }: Cell) => Math.abs(of.effect ?? 0);
  const rank = ({ of }: Cell) => (of.role === "primary" ? 0 : 1);
  return cells.toSorted((a, b) => rank(a) - rank(b) || size(b) - size(a));
}

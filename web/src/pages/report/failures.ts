/** Parts of a report that do not repeat the submission's failure, and parts that do not apply to it. */
import type { AttemptView, Comparison, Failure, FindingView, Report, TargetReport } from "@/api/types";
import { isSameFailure } from "@/lib/words";

/** Return the target whose verdict is the submission's failure. */
export function failedTarget({ targets, submission: { failure } }: Report): TargetReport | undefined {
  if (!failure) return undefined;
  return targets.find(
    target =>
      target.verdict === "failed" &&
      ((target.failure && isSameFailure(target.failure, failure)) ||
        failure.summary === target.headline ||
        target.findings.some(finding => isMainFinding(finding, failure))),
  );
}

/** Return the failed attempts without those of the submission's failure. */
export function otherAttempts({ attempts, submission: { failure } }: Report): AttemptView[] {
  return attempts.filter(attempt => !isSameFailure(attempt.failure, failure));
}

/**
 * Return the findings without those of the submission's failure and panics that follow it in the same boot; equal ones
 * of one kernel once.
 */
export function otherFindings(findings: readonly FindingView[], main: Failure | null): FindingView[] {
  const boot = ({ arm, block, attempt }: FindingView) => `${arm} ${block} ${attempt}`;
  const failed = new Set(findings.filter(finding => isMainFinding(finding, main)).map(boot));
  const others = findings.filter(
    finding => !isMainFinding(finding, main) && !(finding.kind === "panic" && failed.has(boot(finding))),
  );
  const key = ({ arm, kind, defect, title }: FindingView) => `${arm} ${kind} ${defect || title}`;
  return [...new Map(others.toReversed().map(finding => [key(finding), finding])).values()].toReversed();
}

function isMainFinding(finding: FindingView, main: Failure | null): boolean {
  if (main?.kind !== "kernel") return false;
  if (finding.defect && main.defect) return finding.defect === main.defect;
  return (
    main.summary.endsWith(finding.title) ||
    (finding.excerpt !== "" && (main.excerpt ?? "").includes(finding.excerpt))
  );
}

/** Return the comparisons to show: none if the submission failed before there was anything to compare. */
export function shownComparisons({ submission }: Report, target: TargetReport): Comparison[] {
  const compared = target.comparisons.some(of => of.baseline !== null && of.candidate !== null);
  return compared || !submission.failure ? target.comparisons : [];
}

/** Return true if a verdict of the report comes from the statistical method, or the submission did not fail. */
export function appliesMethod(report: Report): boolean {
  return (
    !report.submission.failure ||
    report.targets.some(target =>
      shownComparisons(report, target).some(
        of => of.evidence !== "none" && of.verdict !== null && of.verdict !== "failed",
      ),
    )
  );
}

/** Return true if somebody may want to build the kernels again: for their figures, or to see one fail. */
export function appliesRebuilding(report: Report): boolean {
  const booted = report.targets.some(target => target.environment || target.findings.length > 0);
  return appliesMethod(report) || (report.submission.failure?.kind === "kernel" && booted);
}

import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { Report, TargetReport } from "@/api/types";
import { deviceKind, isInstrumented, noiseFloor } from "@/lib/instrumented";
import { decides } from "@/lib/words";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { FailureLink, FailureSentence } from "@/parts/FailureCard";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { failedTarget } from "./failures";
import { MATCH_HASH } from "./OnThisPage";
import classes from "./Verdicts.module.css";

/** Length in characters above which the summary uses a smaller font, so that the targets stay visible. */
const LONG = 90;

/** The verdict: a summary and one headline per target, as written by the server. */
export const Verdicts = memo(function Verdicts({ report }: { report: Report }) {
  if (report.targets.length === 0) return null;
  const failed = failedTarget(report);
  return (
    <section className={classes.whole} aria-label="Verdict">
      <p className={classes.summary} data-long={report.summary.length > LONG || undefined}>
        {report.summary}
      </p>
      <ul className={classes.list}>
        {report.targets.map(target => (
          <li key={target.run_id} className={classes.target}>
            <span className={classes.badge}>
              <VerdictBadge verdict={target.verdict} />
            </span>
            <span className={classes.name}>
              <Link to="." search hash={`run-${target.run_id}`} activeOptions={MATCH_HASH}>
                {target.plan.name} on {target.device_type}
              </Link>
              {target.emulated && <span className={classes.emulated}> {deviceKind(target)}</span>}
            </span>
            <span className={classes.headline}>
              {target === failed ? (
                <FailureLink where="below" />
              ) : (
                <>
                  <FailureSentence
                    text={target.headline}
                    mainFailure={report.submission.failure}
                    where="below"
                  />{" "}
                  <HeadlineEvidence by={target} />
                  {isInstrumented(target) && <span className="muted"> {noiseFloor(target)}</span>}
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
});

/** Evidence of the headline's figures. */
function HeadlineEvidence({ by }: { by: TargetReport }) {
  const primary =
    by.comparisons.find(of => decides(of) && of.verdict === by.verdict) ?? by.comparisons.find(decides);
  return primary ? <EvidenceMark evidence={primary.evidence} /> : null;
}

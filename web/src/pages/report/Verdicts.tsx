import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { Report, TargetReport } from "@/api/types";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { SaidOnce } from "@/parts/FailureCard";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { HERE } from "./OnThisPage";
import classes from "./Verdicts.module.css";

/** Characters from which the sentence is set smaller: it must not push what it stands on off the screen. */
const LONG = 90;

/** The answer: one sentence for all topologies, then one for each. Every word of it is the server's. */
export const Verdicts = memo(function Verdicts({ report }: { report: Report }) {
  if (report.targets.length === 0) return null;
  return (
    <section className={classes.whole} aria-label="Verdict">
      <p className={classes.summary} data-long={report.summary.length > LONG || undefined}>
        {sentence(report)}
      </p>
      <ul className={classes.list}>
        {report.targets.map(target => (
          <li key={target.run_id} className={classes.target}>
            <span className={classes.badge}>
              <VerdictBadge verdict={target.verdict} />
            </span>
            <span className={classes.name}>
              <Link to="." search hash={`run-${target.run_id}`} activeOptions={HERE}>
                {target.plan.name} on {target.device_type}
              </Link>
              {target.emulated && <span className={classes.emulated}> emulated</span>}
            </span>
            <span className={classes.headline}>
              <SaidOnce text={target.headline} told={report.submission.failure} where="below" />{" "}
              <Carried by={target} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
});

/** What kind of evidence the headline's figures are. */
function Carried({ by }: { by: TargetReport }) {
  const primary = by.comparisons.find(of => of.role === "primary");
  return primary ? <EvidenceMark evidence={primary.evidence} /> : null;
}

/** As the server says it; a sentence that begins with a plan's name keeps its letters. */
function sentence({ summary, targets }: Report): string {
  if (summary === "") return "";
  const named = targets.some(({ plan }) => summary.startsWith(plan.name));
  return `${named ? summary : summary.charAt(0).toUpperCase() + summary.slice(1)}.`;
}

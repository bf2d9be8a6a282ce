import type { TargetSummary } from "@/api/types";
import classes from "./TargetVerdicts.module.css";
import { VerdictBadge } from "./VerdictBadge";

/** The verdict of each target: `xeon-2s + improvement`. The plan is shown if there is more than one, and the kind unless it is hardware. */
export function TargetVerdicts({ targets }: { targets: readonly TargetSummary[] }) {
  const plans = new Set(targets.map(target => target.plan));
  return (
    <ul className={classes.list}>
      {targets.map(target => (
        <li key={target.run_id} className={classes.target} title={target.headline || undefined}>
          <span className={classes.name}>
            {plans.size > 1 ? `${target.plan}@${target.device_type}` : target.device_type}
            {target.modelled ? ", modelled" : target.emulated && ", emulated"}
          </span>{" "}
          {isCanceled(target) ? (
            <span className="muted">canceled</span>
          ) : target.verdict || target.outcome === "failed" ? (
            <VerdictBadge verdict={target.verdict ?? "failed"} />
          ) : target.state === "running" && target.total_boots > 0 ? (
            <span className="muted">
              {target.done_boots}/{target.total_boots} boots
            </span>
          ) : (
            <span className="muted">{target.outcome ?? target.state}</span>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Return true for a canceled run without figures: it neither failed nor is undecided. */
function isCanceled({ outcome, verdict }: TargetSummary): boolean {
  return outcome === "canceled" && (verdict == null || verdict === "failed" || verdict === "inconclusive");
}

/** Format the verdicts of the targets as text to copy. */
export function targetVerdictsText(targets: readonly TargetSummary[]): string {
  return targets
    .map(of => {
      const word = isCanceled(of) ? "canceled" : (of.verdict ?? of.outcome ?? of.state);
      return `${of.plan}@${of.device_type} ${word}`;
    })
    .join(", ");
}

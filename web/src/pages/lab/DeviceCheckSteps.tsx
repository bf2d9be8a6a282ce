import type { DeviceCheck } from "@/api/types";
import { oneLine } from "@/lib/words";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./LabPage.module.css";

/** Steps of a device check requested by a maintainer, with outcomes and fixes for failures. */
export function DeviceCheckSteps({ check }: { check: DeviceCheck }) {
  const unattributed = check.failure && !check.steps.some(step => step.outcome === "failed");
  return (
    <div>
      <p>
        <StateBadge state={check.finished_at ? "finished" : "running"} outcome={check.outcome} /> requested by{" "}
        {check.by}, <RelativeTime at={check.created_at} />
        {check.doing && <span className={classes.note}>{oneLine(check.doing)}</span>}
      </p>
      <dl className="facts">
        {check.steps.map(step => (
          <div key={step.step} className={classes.step}>
            <dt>{step.step}</dt>
            <dd>
              <strong>{step.outcome}</strong> {oneLine(step.text)}
              {step.failure?.advice && (
                <span className={classes.note}>Fix: {oneLine(step.failure.advice)}</span>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {unattributed && check.failure && <p>{oneLine(check.failure.summary)}</p>}
    </div>
  );
}

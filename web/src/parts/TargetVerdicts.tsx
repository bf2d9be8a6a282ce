import type { TargetSummary } from "@/api/types";
import { oneLine, toneOf } from "@/lib/words";
import { StateBadge } from "./StateBadge";
import classes from "./TargetVerdicts.module.css";
import { VerdictBadge } from "./VerdictBadge";

interface TargetVerdictsProps {
  targets: readonly TargetSummary[];
  /** A line for each, with its verdict in a sentence. */
  headlines?: boolean;
}

/** A submission's answer per topology: `xeon-2s + improvement`. The plan is named where there is more than one. */
export function TargetVerdicts({ targets, headlines = false }: TargetVerdictsProps) {
  const plans = new Set(targets.map(target => target.plan));
  return (
    <ul className={classes.list} data-lines={headlines || undefined}>
      {targets.map(target => (
        <li
          key={target.run_id}
          className={classes.target}
          title={headlines ? undefined : target.headline || undefined}
        >
          <span className={classes.name}>
            {plans.size > 1 ? `${target.plan}@${target.device_type}` : target.device_type}
          </span>{" "}
          {target.verdict ? (
            <VerdictBadge verdict={target.verdict} />
          ) : target.state === "running" && target.total_boots > 0 ? (
            <span className="muted">
              {target.done_boots}/{target.total_boots} boots
            </span>
          ) : toneOf(target.outcome ?? "") === "none" ? (
            <span className="muted">{target.outcome ?? target.state}</span>
          ) : (
            <StateBadge state={target.state} outcome={target.outcome} />
          )}
          {headlines && target.headline && (
            <span className={classes.headline}>{oneLine(target.headline)}</span>
          )}
        </li>
      ))}
    </ul>
  );
}

/** The same as copied text. */
export function targetVerdictsText(targets: readonly TargetSummary[]): string {
  return targets
    .map(target => `${target.plan}@${target.device_type} ${target.verdict ?? target.outcome ?? target.state}`)
    .join(", ");
}

/** Everything about one plan on one topology: what was asked of it, why it ended so, and what it ran on. */
import { memo } from "react";
import type { Failure, TargetReport } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine, spoken } from "@/lib/words";
import { FailureCard, SaidOnce } from "@/parts/FailureCard";
import { Section } from "@/parts/Page";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { Curves } from "./Curves";
import { Environment } from "./Environment";
import { Findings } from "./Findings";
import type { Cell } from "./model";
import { Published } from "./Published";
import { Studies } from "./Study";
import classes from "./TargetSection.module.css";
import { Workqueues } from "./Workqueues";

export const TargetSection = memo(function TargetSection({
  target,
  cells,
  told,
}: {
  target: TargetReport;
  cells: readonly Cell[];
  /** The submission's failure, which the page tells above. */
  told: Failure | null;
}) {
  const { plan, device_type, emulated } = target;
  return (
    <div className={classes.target}>
      <Section
        id={`run-${target.run_id}`}
        title={
          <>
            {plan.name} on {device_type} {emulated && <span className={classes.emulated}>emulated</span>}
          </>
        }
        lead={oneLine(plan.summary)}
      >
        <div className={classes.verdict}>
          <VerdictBadge verdict={target.verdict} />
          <span>
            <SaidOnce text={target.headline} told={told} where="above" />
          </span>
        </div>
        <p className={classes.blocks}>{blocks(target)}</p>
        {target.failure && (
          <FailureCard failure={target.failure} what={`the run on ${device_type}`} told={told} />
        )}
        <Studies target={target} cells={cells} />
        <Curves target={target} />
        <Workqueues target={target} />
        <Reasons reasons={target.reasons} />
        <Published target={target} />
        {target.unsupported.length > 0 && (
          <div>
            <h3>Not supported or not measured here</h3>
            <ul className={classes.reasons}>
              {target.unsupported.map(each => (
                <li key={`${each.arm} ${each.scenario} ${each.setting} ${each.metric}`}>
                  {[each.scenario, each.setting, each.metric].filter(Boolean).join(" ")}, {each.arm}:{" "}
                  {oneLine(each.reason)}
                </li>
              ))}
            </ul>
          </div>
        )}
        <Findings findings={target.findings} />
        <Environment target={target} />
      </Section>
    </div>
  );
});

/** Reasons that stand on the page; of a large plan the others are one press away. */
const AT_ONCE = 8;

function Reasons({ reasons }: { reasons: readonly string[] }) {
  if (reasons.length === 0) return null;
  const list = (some: readonly string[]) => (
    <ul className={classes.reasons}>
      {some.map(reason => (
        <li key={reason}>{oneLine(reason)}</li>
      ))}
    </ul>
  );
  const more = reasons.slice(AT_ONCE);
  return (
    <div>
      <h3>Why</h3>
      {list(reasons.slice(0, AT_ONCE))}
      {more.length > 0 && (
        <details className={classes.more}>
          <summary>{count(more.length, "more reason")}</summary>
          {list(more)}
        </details>
      )}
    </div>
  );
}

function blocks(target: TargetReport): string {
  const discarded = Object.entries(target.discarded).filter(([, many]) => many > 0);
  const {
    warmup = 1,
    untraced = 5,
    traced = 1,
  } = (target.emulated ? target.plan.emulated : target.plan.hardware).repetitions ?? {};
  return [
    `${target.blocks_completed} of ${count(target.blocks_planned, "block")} completed`,
    discarded.length > 0
      ? `discarded and repeated: ${discarded.map(([arm, many]) => `${arm} ${many}`).join(", ")}`
      : "none discarded",
    `each boot: ${warmup} warm-up, ${untraced} untraced and ${traced} traced repetitions`,
    ...(target.outcome && target.outcome !== "passed" ? [`the run ${spoken(target.outcome)}`] : []),
  ].join("; ");
}

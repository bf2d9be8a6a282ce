/** Results of one plan on one device type: verdict, figures, reasons and environment. */
import { memo } from "react";
import type { Report, TargetReport } from "@/api/types";
import {
  COUNTS_ARE,
  COUNTS_BESIDE_A_MODEL,
  costsOf,
  deviceKind,
  isInstrumented,
  isModelled,
  MODELS_CANNOT_TELL,
  noiseNote,
} from "@/lib/instrumented";
import { count, metricName } from "@/lib/numbers";
import { humanize, isSameFailure, NOT_MEASURED, oneLine } from "@/lib/words";
import { FailureCard, FailureLink, FailureSentence } from "@/parts/FailureCard";
import { Section } from "@/parts/Page";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { firstCounts } from "./Changed";
import { Counts } from "./Counts";
import { Curves } from "./Curves";
import { Differences } from "./Differences";
import { Environment } from "./Environment";
import { Explanation } from "./Explanation";
import { Findings } from "./Findings";
import { failedTarget, otherFindings, shownComparisons } from "./failures";
import { Ladder } from "./Ladder";
import type { Cell } from "./model";
import { Published } from "./Published";
import { Studies } from "./Study";
import classes from "./TargetSection.module.css";
import { Waits } from "./Waits";
import { Workqueues } from "./Workqueues";

export const TargetSection = memo(function TargetSection({
  target,
  cells,
  report,
}: {
  target: TargetReport;
  cells: readonly Cell[];
  report: Report;
}) {
  const { plan, device_type } = target;
  const kind = deviceKind(target);
  const mainFailure = report.submission.failure;
  const compared = shownComparisons(report, target).length > 0;
  return (
    <div className={classes.target}>
      <Section
        id={`run-${target.run_id}`}
        title={
          <>
            {plan.name} on {device_type} {kind && <span className={classes.emulated}>{kind}</span>}
          </>
        }
        lead={oneLine(plan.summary)}
      >
        <div className={classes.verdict}>
          <VerdictBadge verdict={target.verdict} />
          <span>
            {target === failedTarget(report) ? (
              <FailureLink where="above" />
            ) : (
              <FailureSentence text={target.headline} mainFailure={mainFailure} where="above" />
            )}
          </span>
        </div>
        {isModelled(target) && (
          <p className={classes.blocks}>
            {costsOf(target)}. {MODELS_CANNOT_TELL}: <a href="/docs/model/">more</a>
          </p>
        )}
        <p className={classes.blocks}>{blocksText(target)}</p>
        {isInstrumented(target) && compared && (
          <p className={classes.blocks}>
            {noiseNote(target)} {isModelled(target) ? COUNTS_BESIDE_A_MODEL : COUNTS_ARE}
          </p>
        )}
        {compared &&
          target.comparisons.some(each => each.question === "kernel") &&
          (target.canaries ?? []).map(record => (
            <p key={`${record.device} ${record.kind}`} className={classes.blocks}>
              {oneLine(record.line)}.
            </p>
          ))}
        {target.failure && !isSameFailure(target.failure, mainFailure) && (
          <FailureCard
            failure={target.failure}
            what={`the run on ${device_type}`}
            mainFailure={mainFailure}
          />
        )}
        <Ladder target={target} />
        <Differences target={target} />
        <Studies target={target} cells={cells} />
        <Curves target={target} />
        {compared && <Explanation target={target} />}
        <Counts target={target} above={firstCounts(report)} />
        <Workqueues target={target} />
        <Waits target={target} />
        {(compared || !mainFailure) && <Reasons reasons={target.reasons} />}
        <Published target={target} />
        {target.unsupported.length > 0 && (
          <div>
            <h3>Not measured</h3>
            <ul className={classes.reasons}>
              {target.unsupported.map(each => (
                <li key={`${each.arm} ${each.scenario} ${each.setting} ${each.metric}`}>
                  {[each.scenario, each.setting, each.metric && metricName(each.metric)]
                    .filter(Boolean)
                    .join(" ")}
                  , {each.arm}: {NOT_MEASURED[each.cause]}: {oneLine(each.reason)}
                </li>
              ))}
            </ul>
          </div>
        )}
        <Findings findings={otherFindings(target.findings, mainFailure)} />
        <Environment target={target} />
      </Section>
    </div>
  );
});

/** Number of reasons shown initially; the others are in a disclosure. */
const INITIALLY_SHOWN = 8;

function Reasons({ reasons }: { reasons: readonly string[] }) {
  if (reasons.length === 0) return null;
  const list = (some: readonly string[]) => (
    <ul className={classes.reasons}>
      {some.map(reason => (
        <li key={reason}>{oneLine(reason)}</li>
      ))}
    </ul>
  );
  const more = reasons.slice(INITIALLY_SHOWN);
  return (
    <div>
      <h3>Reasons</h3>
      {list(reasons.slice(0, INITIALLY_SHOWN))}
      {more.length > 0 && (
        <details className={classes.more}>
          <summary>{count(more.length, "more reason")}</summary>
          {list(more)}
        </details>
      )}
    </div>
  );
}

/** Why a run with looks ended: `stopped at 6 of 16 blocks: effect found`. */
function stopOf({ looked = [], blocks_planned }: TargetReport): string[] {
  const last = looked.at(-1);
  if (!last || last.reason === "open") return [];
  return last.blocks < blocks_planned
    ? [`stopped at ${last.blocks} of ${count(blocks_planned, "block")}: ${oneLine(last.text)}`]
    : [`looked at ${count(last.blocks, "block")}: ${oneLine(last.text)}`];
}

function blocksText(target: TargetReport): string {
  if (target.byte_identical) return "No device was used. Select “Measure anyway” to boot both kernels.";
  const discarded = Object.entries(target.discarded)
    .filter(([, many]) => many > 0)
    .map(([arm, many]) => `${arm} ${many}`);
  if (target.discarded_by_lab > 0)
    discarded.push(`for failures of the lab ${target.discarded_by_lab} (counted against no kernel)`);
  const {
    warmup = 1,
    warmup_most,
    untraced = 5,
    traced = 1,
  } = (target.emulated ? target.plan.emulated : target.plan.hardware).repetitions ?? {};
  return [
    `${target.blocks_completed} of ${count(target.blocks_planned, "block")} completed${isInstrumented(target) ? ", one seed each" : ""}`,
    discarded.length > 0 ? `discarded and repeated: ${discarded.join(", ")}` : "none discarded",
    ...stopOf(target),
    `each boot: ${warmup_most == null ? warmup : `${warmup} to ${warmup_most}`} warm-up, ${untraced} untraced and ${traced} traced repetitions`,
    ...(target.outcome && target.outcome !== "passed" ? [`run ${humanize(target.outcome)}`] : []),
  ].join("; ");
}

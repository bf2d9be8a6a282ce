/** The patches of a walk: each with its effect against the kernel before, and the whole series at the end. */
import type { Comparison, LadderRung, TargetReport } from "@/api/types";
import { count, metricName } from "@/lib/numbers";
import { decides, oneLine } from "@/lib/words";
import { FailureCard } from "@/parts/FailureCard";
import { Effect } from "@/parts/Value";
import { VerdictBadge } from "@/parts/VerdictBadge";
import classes from "./Ladder.module.css";

const INSTEAD: Partial<Record<LadderRung["state"], string>> = {
  planned: "not built yet",
  identical: "the same kernel",
  not_built: "does not build",
  kernel_failed: "its kernel fails",
};

export function Ladder({ target }: { target: TargetReport }) {
  const { ladder } = target;
  if (!ladder) return null;
  const whole = shownOf(
    target.verdict,
    target.comparisons.filter(each => each.question === "kernel" && decides(each)),
  );
  return (
    <div className={classes.whole}>
      <h3>Patch by patch</h3>
      {ladder.sentence && <p>{sentenceOf(ladder.sentence)}</p>}
      <ol className={classes.ladder}>
        {ladder.rungs.map(rung => (
          <Rung key={rung.patch} rung={rung} />
        ))}
        <li className={classes.rung} data-whole>
          <span className={classes.number} aria-hidden="true" />
          <span className={classes.subject}>Whole series</span>
          <Figure comparison={whole} instead={target.byte_identical ? "the same kernel" : undefined} />
          <span>
            <VerdictBadge verdict={target.verdict} />
          </span>
        </li>
      </ol>
      <p className="muted">
        Each patch is measured against the last kernel before it that was measured, with{" "}
        {count(ladder.boots_per_block, "boot")} a block, one of each kernel. The patches and the whole series
        are one family of tests: at most 5 % of such ladders claim any change that is none.
      </p>
    </div>
  );
}

function Rung({ rung }: { rung: LadderRung }) {
  const found = (rung.comparisons ?? []).filter(decides);
  const shown = shownOf(rung.verdict, found);
  const many = found.filter(each => each.verdict === rung.verdict).length;
  return (
    <li className={classes.rung}>
      <span className={classes.number}>{rung.patch}</span>
      <span className={classes.subject}>
        {oneLine(rung.subject)}
        {rung.reference !== rung.patch - 1 && (
          <span className="muted">
            {" "}
            against {rung.reference === 0 ? "the base" : `patch ${rung.reference}`}
          </span>
        )}
        {shown && found.length > 1 && (
          <span className="muted">
            {" "}
            {[shown.scenario, shown.setting, metricName(shown.metric)].filter(Boolean).join(" ")}, {many} of{" "}
            {found.length}
          </span>
        )}
      </span>
      <Figure comparison={shown} instead={INSTEAD[rung.state]} />
      <span>
        <VerdictBadge verdict={rung.verdict} />
      </span>
      {rung.failure && (
        <details className={classes.failure}>
          <summary>What happened</summary>
          <FailureCard failure={rung.failure} what={`patch ${rung.patch}`} />
        </details>
      )}
    </li>
  );
}

function Figure({
  comparison,
  instead,
}: {
  comparison: Comparison | undefined;
  instead?: string | undefined;
}) {
  return (
    <span className={classes.figure}>
      {instead !== undefined ? (
        <span className="muted">{instead}</span>
      ) : (
        comparison && <Effect of={comparison} />
      )}
    </span>
  );
}

/** Return the comparison that a rung shows: of those with its verdict the one with the largest effect. */
export function shownOf(
  verdict: LadderRung["verdict"],
  comparisons: readonly Comparison[],
): Comparison | undefined {
  const carrying = comparisons.filter(each => each.verdict === verdict);
  const size = (of: Comparison) => Math.abs(of.effect ?? 0);
  return (carrying.length > 0 ? carrying : [...comparisons]).toSorted((a, b) => size(b) - size(a))[0];
}

function sentenceOf(text: string): string {
  const line = oneLine(text);
  return `${line.charAt(0).toUpperCase()}${line.slice(1)}.`;
}

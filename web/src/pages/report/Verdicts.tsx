import { Link } from "@tanstack/react-router";
import { memo, type ReactNode } from "react";
import type { Report, TargetReport } from "@/api/types";
import { deviceKind } from "@/lib/instrumented";
import { count, number, places } from "@/lib/numbers";
import { oneLine, type Tone, VERDICTS } from "@/lib/words";
import { FailureLink, FailureSentence } from "@/parts/FailureCard";
import { Effect } from "@/parts/Value";
import { type Claims, claimsOf } from "./claims";
import { failedTarget } from "./failures";
import type { Cell } from "./model";
import { MATCH_HASH } from "./OnThisPage";
import classes from "./Verdicts.module.css";

/** Length in characters above which the summary uses a smaller font, so that the claims stay visible. */
const LONG = 90;
const SHOWN = 3;

/** The headline as written by the server, and what is better, worse, open and not measured. */
export const Verdicts = memo(function Verdicts({
  report,
  cells,
}: {
  report: Report;
  cells: readonly Cell[];
}) {
  if (report.targets.length === 0) return null;
  const claims = claimsOf(report, cells);
  return (
    <section className={classes.whole} aria-label="Verdict">
      <p className={classes.summary} data-long={report.summary.length > LONG || undefined}>
        {report.summary}
      </p>
      <dl className={classes.claims}>
        {claims.failed.length > 0 && (
          <Claim verdict="failed" label="fails">
            <Targets of={claims.failed} report={report} />
          </Claim>
        )}
        {claims.worse.length > 0 && (
          <Claim verdict="regression" label="worse">
            <Figures of={claims.worse} />
          </Claim>
        )}
        {claims.better.length > 0 && (
          <Claim verdict="improvement" label="better">
            <Figures of={claims.better} />
          </Claim>
        )}
        {claims.open.length > 0 && (
          <Claim verdict="inconclusive" label="open">
            <Figures of={claims.open} reasons />
          </Claim>
        )}
        {claims.worse.length === 0 && claims.failed.length === 0 && claims.judged > 0 && (
          <Claim verdict="equivalent" label="worse: 0">
            <p>
              <strong>Nothing is judged worse.</strong> {decidedText(claims)}{" "}
              <Link to="." search hash="numbers" activeOptions={MATCH_HASH}>
                All comparisons
              </Link>
            </p>
          </Claim>
        )}
        {(claims.values.length > 0 || claims.missing.length > 0) && (
          <Claim label="not measured">
            {claims.values.length > 0 && (
              <p>
                <strong>{claims.values.map(plain).join(", ")}:</strong> the devices are emulated, and their
                clock is no evidence.
              </p>
            )}
            {claims.missing.length > 0 && <Targets of={claims.missing} report={report} />}
          </Claim>
        )}
      </dl>
    </section>
  );
});

function decidedText({ judged, decided, open }: Claims): string {
  const undecided = open.length > 0 ? `, ${open.length} ${open.length === 1 ? "is" : "are"} open` : "";
  return `${decided} of ${count(judged, "judged comparison")} ${decided === 1 ? "is" : "are"} decided${undecided}.`;
}

interface ClaimProps {
  verdict?: keyof typeof VERDICTS;
  label: string;
  children: ReactNode;
}

function Claim({ verdict, label, children }: ClaimProps) {
  const tone: Tone = verdict ? VERDICTS[verdict].tone : "none";
  return (
    <div className={classes.claim}>
      <dt>
        <span className={classes.badge} data-tone={tone}>
          {verdict && <span aria-hidden="true">{VERDICTS[verdict].sign} </span>}
          {label}
        </span>
      </dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The first comparisons, each with a link to its figures. `reasons`: why they are open. */
function Figures({ of, reasons = false }: { of: readonly Cell[]; reasons?: boolean }) {
  const more = of.length - SHOWN;
  return (
    <>
      {of.slice(0, SHOWN).map(cell => (
        <p key={cell.key}>
          <Link
            to="."
            search={before => ({ ...before, cell: cell.key })}
            hash="cell"
            className={classes.metric}
            activeOptions={MATCH_HASH}
          >
            {cell.of.evidence === "modelled" && "modelled "}
            {plain(cell.of.metric)}
          </Link>{" "}
          <FigureOf cell={cell} />
          <span className="muted"> {whereOf(cell)}</span>
          {reasons && <span className={classes.reason}>{oneLine(cell.of.reason)}</span>}
        </p>
      ))}
      {more > 0 && <p className="muted">and {more} more</p>}
    </>
  );
}

function FigureOf({ cell: { of } }: { cell: Cell }) {
  if (of.exact && of.baseline && of.candidate) {
    const decimals = places([of.baseline.mean, of.candidate.mean]);
    return (
      <strong className="nowrap">
        <span className={classes.a}>{number(of.baseline.mean, decimals)}</span> →{" "}
        <span className={classes.b}>{number(of.candidate.mean, decimals)}</span>
      </strong>
    );
  }
  return of.effect == null ? null : (
    <strong>
      <Effect of={of} />
    </strong>
  );
}

/** `on xeon-2s (emulated), HIGH, scope=cache`. */
function whereOf({ of, target }: Cell): string {
  const kind = deviceKind(target);
  const device = kind ? `${target.device_type} (${kind})` : target.device_type;
  const several = target.plan.scenarios.length > 1;
  return `on ${[device, several ? of.scenario : "", of.setting].filter(Boolean).join(", ")}`;
}

/** Targets with the reason in place of figures. */
function Targets({ of, report }: { of: readonly TargetReport[]; report: Report }) {
  return of.map(target => (
    <p key={target.run_id}>
      <Link to="." search hash={`run-${target.run_id}`} activeOptions={MATCH_HASH}>
        {target.plan.name} on {target.device_type}
      </Link>
      :{" "}
      {target === failedTarget(report) ? (
        <FailureLink where="below" />
      ) : (
        <FailureSentence text={target.headline} mainFailure={report.submission.failure} where="below" />
      )}
    </p>
  ));
}

/** A metric's name as words. */
function plain(metric: string): string {
  return metric.replaceAll("_", " ");
}

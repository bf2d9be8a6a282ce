import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { queueQuery } from "@/api/queries";
import type { Arm, BuildStep, RunStep, SubmissionSteps } from "@/api/types";
import { count } from "@/lib/numbers";
import { isSameFailure, oneLine, stateOrOutcome } from "@/lib/words";
import { FailureLink, FailureSentence } from "@/parts/FailureCard";
import { useNow } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { BlockStrip, StripLegend } from "./BlockStrip";
import { type Selection, toBuild, toRun, toSeries } from "./selection";
import { applyText, buildText, elapsed, hasSeries, waitText } from "./steps";
import classes from "./Timeline.module.css";

const QUEUE_MS = 15_000;

/** Steps of a submission in order, each a link to its details. Later steps are shown from the start. */
export function Timeline({ steps, selection }: { steps: SubmissionSteps; selection: Selection }) {
  const now = useNow(1000);
  const { apply, builds, runs } = steps;
  const series = hasSeries(runs);
  const ended = steps.submission.state === "finished";
  const mainFailure = steps.submission.failure;
  return (
    <ol className={classes.steps}>
      <Step
        title={series ? "Apply" : "Resolve"}
        state={apply}
        text={applyText(apply, series)}
        isMainFailure={apply.failure !== null && isSameFailure(apply.failure, mainFailure)}
        time={elapsed(apply, now)}
        progress={apply.state === "running" ? apply : null}
        to={toSeries()}
        current={selection.kind === "series"}
      />
      {builds.map(build => (
        <Step
          key={`${build.id} ${build.arm}`}
          title={buildTitle(build, builds)}
          state={build}
          text={buildText(build)}
          isMainFailure={build.failure !== null && isSameFailure(build.failure, mainFailure)}
          time={build.reused ? "" : elapsed(build, now)}
          progress={build.state === "running" ? build : null}
          to={toBuild(build.id)}
          current={selection.kind === "build" && selection.build.id === build.id}
        />
      ))}
      {builds.length === 0 &&
        (series ? (["baseline", "candidate"] as Arm[]) : (["baseline"] as Arm[])).map(arm => (
          <Step
            key={arm}
            title={`Build ${arm}`}
            state={ended ? null : { state: "waiting", outcome: null }}
            text={ended ? "not built" : "Waiting for the source"}
          />
        ))}
      {runs.map(run => (
        <Run key={run.id} run={run} steps={steps} selection={selection} now={now} />
      ))}
      {(steps.traced_runs ?? []).map(run => (
        <Run key={run.id} run={run} traced steps={steps} selection={selection} now={now} />
      ))}
      <li className={classes.legend}>
        <StripLegend />
      </li>
    </ol>
  );
}

function buildTitle(build: BuildStep, all: readonly BuildStep[]): string {
  const alone = all.every(each => each.recipe === build.recipe && each.arch === build.arch);
  return `Build ${build.arm}${alone ? "" : `, ${build.recipe} ${build.arch}`}`;
}

interface StepProps {
  title: string;
  /** Null if the step was never reached. */
  state: Parameters<typeof StateBadge>[0] | null;
  text: string;
  /** Show a link to the main failure instead of `text`. */
  isMainFailure?: boolean;
  time?: string;
  progress?: { progress_done: number; progress_total: number } | null;
  to?: ReturnType<typeof toSeries>;
  current?: boolean;
}

function Step({
  title,
  state,
  text,
  isMainFailure,
  time = "",
  progress = null,
  to,
  current = false,
}: StepProps) {
  const known = progress !== null && progress.progress_total > 0;
  return (
    <li className={classes.step} data-current={current || undefined}>
      <div className={classes.head}>
        <h3 className={classes.title}>
          {to ? (
            <StepLink to={to} current={current}>
              {title}
            </StepLink>
          ) : (
            title
          )}
        </h3>
        <span className={classes.state}>{state && <StateBadge {...state} />}</span>
        <span className={classes.time}>{time}</span>
      </div>
      {isMainFailure ? (
        <p className={classes.text}>
          <SeeAbove />
        </p>
      ) : (
        <p className={classes.text} title={text}>
          {text || "\u00a0"}
        </p>
      )}
      <progress
        className={classes.bar}
        data-hidden={!known || undefined}
        aria-hidden={!known}
        aria-label={`${title}, done`}
        max={progress?.progress_total || 1}
        value={known ? Math.min(progress.progress_done, progress.progress_total) : 0}
      />
    </li>
  );
}

/** Link to the failure, stacked above the link that covers the step. */
function SeeAbove() {
  return (
    <span className={classes.above}>
      <FailureLink where="above" />
    </span>
  );
}

/** Step title as a link whose target area covers the whole step. */
function StepLink({
  to,
  current,
  children,
}: {
  to: ReturnType<typeof toSeries>;
  current: boolean;
  children: ReactNode;
}) {
  return (
    <Link
      to="/submissions/$id"
      params={params => params as { id: number }}
      search={before => ({ ...before, ...to })}
      resetScroll={false}
      className={classes.chooser}
      aria-current={current ? "step" : undefined}
    >
      {children}
    </Link>
  );
}

interface RunProps {
  run: RunStep;
  /** True for a run of traced boots, which has no verdict. */
  traced?: boolean;
  steps: SubmissionSteps;
  selection: Selection;
  now: Date;
}

function Run({ run, traced = false, steps, selection, now }: RunProps) {
  const current = selection.kind === "run" && selection.run.id === run.id;
  const target = steps.submission.targets.find(each => each.run_id === run.id);
  const completed = run.blocks.filter(block => block.state === "completed").length;
  const discarded = run.blocks.reduce((sum, block) => sum + block.discarded, 0);
  const isMainFailure = run.failure !== null && isSameFailure(run.failure, steps.submission.failure);
  const text =
    run.failure !== null
      ? oneLine(run.failure.summary)
      : run.state === "running"
        ? oneLine(run.progress) || "Preparing the device"
        : "";
  return (
    <li className={classes.step} data-current={current || undefined}>
      <div className={classes.head}>
        <h3 className={classes.title}>
          <StepLink to={toRun(run.id)} current={current}>
            {traced && "Traced boots: "}
            {run.plan} on {run.device_type}
          </StepLink>
        </h3>
        <span className={classes.state}>
          <StateBadge state={run.state} outcome={run.outcome} />
        </span>
        <span className={classes.time}>{elapsed(run, now)}</span>
      </div>
      <dl className={classes.facts}>
        <dt>Device</dt>
        <dd>
          <Waiting run={run} />
        </dd>
        <dt>{run.state === "finished" ? "Outcome" : "Progress"}</dt>
        {isMainFailure ? (
          <dd className={classes.line}>
            {run.started_at === null && "Not run: "}
            <SeeAbove />
          </dd>
        ) : (
          <dd className={classes.line} title={text}>
            {text || (run.state === "finished" ? stateOrOutcome(run) : "\u2013")}
          </dd>
        )}
        <dt>Blocks</dt>
        <dd>
          {completed} of {run.blocks.length} completed
          {discarded > 0 && `, ${count(discarded, "attempt")} discarded`}
        </dd>
      </dl>
      <div className={classes.strip}>
        <BlockStrip run={run} boot={selection.kind === "run" ? (selection.boot?.id ?? null) : null} />
      </div>
      <p className={classes.verdict}>
        {target?.verdict ? (
          <>
            <VerdictBadge verdict={target.verdict} />{" "}
            <span className={classes.above}>
              {isMainFailure && target.verdict === "failed" ? (
                <FailureLink where="above" />
              ) : (
                <FailureSentence
                  text={target.headline}
                  mainFailure={steps.submission.failure}
                  where="above"
                />
              )}
            </span>
          </>
        ) : (
          <span className="muted">
            {traced
              ? "A figure differs; these boots count what else does. No verdict is made of them."
              : steps.submission.state === "finished"
                ? "No verdict."
                : "The verdict is available when all boots are compared."}
          </span>
        )}
      </p>
    </li>
  );
}

function Waiting({ run }: { run: RunStep }) {
  const queued = run.state === "queued";
  // Poll: queue changes send no events for this submission.
  const { data } = useQuery({ ...queueQuery, enabled: queued, refetchInterval: queued ? QUEUE_MS : false });
  const why = data?.entries.find(entry => entry.run_id === run.id)?.why ?? "";
  const text = waitText(run, oneLine(why));
  return <span className={classes.waiting}>{text}</span>;
}

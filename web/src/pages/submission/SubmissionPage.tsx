import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { bisectionsQuery } from "@/api/bisectionQueries";
import { type StreamState, useEvents } from "@/api/events";
import { stepsQuery } from "@/api/queries";
import type { Failure, SubmissionSteps } from "@/api/types";
import { isSameFailure, oneLine, stateOrOutcome } from "@/lib/words";
import { MainFailure } from "@/parts/FailureCard";
import { announce } from "@/parts/LiveRegion";
import { Page } from "@/parts/Page";
import { Progress } from "@/parts/Progress";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { VerdictCounts } from "@/parts/VerdictBadge";
import { culpritText, isFound } from "../bisections/labels";
import { Actions } from "./Actions";
import { Attempts } from "./Attempts";
import { BuildPanel } from "./BuildPanel";
import { RunPanel } from "./RunPanel";
import { SeriesPanel } from "./SeriesPanel";
import classes from "./SubmissionPage.module.css";
import { resolveSelection, type Selection } from "./selection";
import { hasSeries } from "./steps";
import { Timeline } from "./Timeline";

const route = getRouteApi("/submissions/$id");

export function SubmissionPage() {
  const { id } = route.useParams();
  const search = route.useSearch();
  const { data: steps } = useSuspenseQuery(stepsQuery(id));
  const { submission } = steps;
  const stream = useEvents(id, { enabled: submission.state !== "finished", after: steps.event_seq });
  const selection = resolveSelection(search, steps);
  useAnnouncements(steps);
  const detail = useScrollIntoView(
    selection,
    search.step !== "" || search.build !== null || search.run !== null,
  );
  return (
    <Page
      title={`${id}: ${oneLine(submission.title)}`}
      trail={<Link to="/submissions">Submissions</Link>}
      actions={<Actions steps={steps} />}
      lead={<Lead steps={steps} stream={stream.state} />}
    >
      <Result steps={steps} />
      <div className={classes.columns}>
        <section className={classes.timeline} aria-label="Steps">
          <h2 className="hidden-visually">Steps</h2>
          <Timeline steps={steps} selection={selection} />
        </section>
        <section className={classes.detail} aria-label="Details of the selected step" ref={detail}>
          <Detail steps={steps} selection={selection} />
        </section>
      </div>
      <Attempts steps={steps} />
    </Page>
  );
}

const STREAM: Record<StreamState, string> = {
  connecting: "connecting",
  live: "live",
  reconnecting: "reconnecting",
  ended: "",
};

function Lead({ steps, stream }: { steps: SubmissionSteps; stream: StreamState }) {
  const { submission } = steps;
  return (
    <span className={classes.lead}>
      <StateBadge state={submission.state} outcome={submission.outcome} />
      <span>
        by {submission.owner}, <RelativeTime at={submission.created_at} />
      </span>
      <span>tree {submission.tree}</span>
      {submission.retry_of !== null && (
        <span>
          retry of{" "}
          <Link to="/submissions/$id" params={{ id: submission.retry_of }}>
            {submission.retry_of}
          </Link>
        </span>
      )}
      <Bisections id={submission.id} />
      {submission.state !== "finished" && stream !== "ended" && (
        <span className={classes.stream} data-state={stream}>
          {STREAM[stream]}
        </span>
      )}
    </span>
  );
}

/** Poll: a bisection may begin after the submission has ended. */
const BISECTIONS_MS = 30_000;

/** The bisections that have made the submission, or have begun with it. */
function Bisections({ id }: { id: number }) {
  const { data } = useQuery({ ...bisectionsQuery({ submission: id }), refetchInterval: BISECTIONS_MS });
  return data?.items.map(of => (
    <span key={of.id}>
      <Link to="/bisections/$id" params={{ id: of.id }}>
        bisection {of.id}
      </Link>
      : {isFound(of) && of.culprit ? <code>{culpritText(of)}</code> : oneLine(of.state.replaceAll("_", " "))}
    </span>
  ));
}

/** Progress of a running submission or result of a finished one. Both take the same space. */
function Result({ steps }: { steps: SubmissionSteps }) {
  const { submission, eta } = steps;
  if (submission.state !== "finished") {
    return (
      <div className={classes.result}>
        <Progress done={eta.done_boots} total={eta.total_boots} noun="boots" finishAt={eta.finish_at}>
          {steps.cancel_requested_at === null
            ? oneLine(eta.what)
            : "Canceling: waiting for running work to stop"}
        </Progress>
      </div>
    );
  }
  const { failure } = submission;
  return (
    <div className={classes.result} data-ended>
      {failure ? (
        <MainFailure failure={stated(failure, steps)} />
      ) : (
        <p>
          <VerdictCounts verdicts={submission.verdicts} />
          {Object.keys(submission.modelled_verdicts ?? {}).length > 0 && (
            <>
              {" "}
              modelled: <VerdictCounts verdicts={submission.modelled_verdicts ?? {}} />
            </>
          )}
        </p>
      )}
      <p className="muted">
        Finished <RelativeTime at={submission.finished_at} />
        {steps.exit_code !== null && `, exit code ${steps.exit_code}`}
        {steps.submission.targets.some(each => each.verdict !== null) && (
          <>
            {". "}
            <a href="/docs/trust/">How far to trust a verdict</a>
          </>
        )}
      </p>
    </div>
  );
}

/** Return the failure with the headline of its target, which counts boots, as summary. */
function stated(failure: Failure, { runs, submission }: SubmissionSteps): Failure {
  const target = submission.targets.find(each =>
    runs.some(run => run.id === each.run_id && run.failure !== null && isSameFailure(run.failure, failure)),
  );
  if (failure.kind !== "kernel" || target?.verdict !== "failed") return failure;
  return { ...failure, summary: `${target.plan} on ${target.device_type}: ${oneLine(target.headline)}` };
}

function Detail({ steps, selection }: { steps: SubmissionSteps; selection: Selection }) {
  const mainFailure = steps.submission.failure;
  if (selection.kind === "series")
    return <SeriesPanel apply={steps.apply} series={hasSeries(steps.runs)} mainFailure={mainFailure} />;
  if (selection.kind === "build")
    return <BuildPanel key={selection.build.id} selection={selection} mainFailure={mainFailure} />;
  return <RunPanel selection={selection} mainFailure={mainFailure} />;
}

/** Announce state changes of the submission and its runs to screen readers. */
function useAnnouncements({ submission, runs, traced_runs = [] }: SubmissionSteps) {
  const announced = useRef<Map<string, string> | null>(null);
  useEffect(() => {
    const now = new Map([
      ["Submission", stateOrOutcome(submission)],
      ...runs.map(run => [`${run.plan} on ${run.device_type}`, stateOrOutcome(run)] as const),
      ...traced_runs.map(
        run => [`Traced boots, ${run.plan} on ${run.device_type}`, stateOrOutcome(run)] as const,
      ),
    ]);
    const before = announced.current;
    announced.current = now;
    if (before === null) return;
    const changes = [...now].filter(([name, state]) => before.get(name) !== state);
    if (changes.length > 0) announce(changes.map(([name, state]) => `${name}: ${state}`).join("; "));
  }, [submission, runs, traced_runs]);
}

/** Scroll the details into view after a selection if the columns are stacked. */
function useScrollIntoView(selection: Selection, chosen: boolean) {
  const detail = useRef<HTMLElement>(null);
  const name =
    selection.kind === "run"
      ? `run ${selection.run.id} ${selection.boot?.id}`
      : selection.kind === "build"
        ? `build ${selection.build.id}`
        : "series";
  const before = useRef(name);
  useEffect(() => {
    if (before.current === name) return;
    before.current = name;
    if (!chosen || !detail.current) return;
    const { top, bottom } = detail.current.getBoundingClientRect();
    if (top > window.innerHeight * 0.75 || bottom < 0) detail.current.scrollIntoView({ block: "start" });
  }, [name, chosen]);
  return detail;
}

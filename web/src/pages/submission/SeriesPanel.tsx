import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { seriesQuery } from "@/api/queries";
import type {
  ApplyStep,
  ApplyView,
  CheckpatchFinding,
  Failure,
  PatchSummary,
  SubmissionView,
} from "@/api/types";
import { fileQuery, seriesUrl } from "@/console/files";
import { count } from "@/lib/numbers";
import { clean, oneLine } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { EmptyState } from "@/parts/EmptyState";
import { Facts } from "@/parts/Facts";
import { FailureCard } from "@/parts/FailureCard";
import { Scroll } from "@/parts/Scroll";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { TakenMails } from "@/parts/TakenMails";
import classes from "./panels.module.css";
import { diffRuns, splitMbox } from "./patch";

const route = getRouteApi("/submissions/$id");

interface SeriesPanelProps {
  apply: ApplyStep;
  series: boolean;
  /** The submission's failure, shown above. */
  mainFailure: Failure | null;
}

/** Details of the series: base commit, checkpatch findings and patches. */
export function SeriesPanel({ apply, series, mainFailure }: SeriesPanelProps) {
  const { id } = route.useParams();
  const { data, error } = useQuery(seriesQuery(id, apply.finished_at));
  return (
    <div className={classes.panel}>
      <div className={classes.head}>
        <div className={classes.title}>
          <h2>{series ? "Series" : "Source"}</h2>
          <StateBadge state={apply.state} outcome={apply.outcome} />
        </div>
        {data?.apply.series_mbox && (
          <a href={seriesUrl(id)} download={`submission-${id}.mbox`}>
            Download mbox
          </a>
        )}
      </div>
      {apply.failure && <FailureCard failure={apply.failure} what="apply" mainFailure={mainFailure} />}
      {apply.state !== "finished" && (
        <p>
          {oneLine(apply.progress) || (apply.state === "running" ? "Starting." : "Waiting for a builder.")}
        </p>
      )}
      {data ? (
        <SeriesDetails id={id} request={data.request} apply={data.apply} series={series} />
      ) : error ? (
        <EmptyState title="The series could not be loaded">{error.message}</EmptyState>
      ) : (
        <Skeleton lines={10} />
      )}
    </div>
  );
}

interface SeriesDetailsProps {
  id: number;
  request: SubmissionView["request"];
  apply: ApplyView;
  series: boolean;
}

function SeriesDetails({ id, request, apply, series }: SeriesDetailsProps) {
  const git = request.series?.git;
  return (
    <>
      <Facts
        of={{
          Tree: request.tree,
          Branch: git && (
            <>
              <code>{clean(git.ref)}</code> of <code className={classes.long}>{clean(git.url)}</code>
            </>
          ),
          "Mail or series": request.series?.thread && (
            <>
              <code className={classes.long}>{clean(request.series.thread.message_id)}</code>
              {request.series.thread.revision ? `, v${request.series.thread.revision}` : ", latest revision"}
            </>
          ),
          Mails: (apply.thread || request.series?.mbox) && (
            <a href={`/api/v1/submissions/${id}/mbox`} download>
              {apply.thread ? "as taken" : "as submitted"}
            </a>
          ),
          Priority: request.priority,
          Base: (
            <>
              {apply.base_commit ? (
                <>
                  <code className={classes.long}>{apply.base_commit}</code>{" "}
                  {apply.release && `(${oneLine(apply.release)})`}
                </>
              ) : apply.state === "finished" ? (
                "unknown"
              ) : (
                "not resolved yet"
              )}
            </>
          ),
        }}
      />
      {apply.thread && <TakenMails of={apply.thread} />}
      {!series && <p className="muted">Settings study: the tree's kernel under several settings.</p>}
      {series && apply.state === "finished" && apply.outcome === "passed" && (
        <Checkpatch findings={apply.checkpatch} skipped={apply.checkpatch_skipped} />
      )}
      {apply.patches.length > 0 && <Patches id={id} patches={apply.patches} />}
    </>
  );
}

const SEVERITIES = ["error", "warning", "check"] as const;

function Checkpatch({ findings, skipped }: { findings: readonly CheckpatchFinding[]; skipped: string }) {
  return (
    <section className={classes.listed}>
      <h3>checkpatch</h3>
      {skipped && (
        <p>
          {findings.length > 0 ? "Incomplete" : "Not run"}, because {oneLine(skipped)}.
        </p>
      )}
      {findings.length === 0 ? (
        !skipped && <p className="muted">No findings.</p>
      ) : (
        <ul>
          {SEVERITIES.flatMap(severity => findings.filter(each => each.severity === severity)).map(
            (each, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: findings may repeat and never change
              <li key={at}>
                <strong data-severity={each.severity}>{each.severity}</strong>{" "}
                <code>{clean(each.where)}</code> {oneLine(each.text)}
              </li>
            ),
          )}
        </ul>
      )}
    </section>
  );
}

function Patches({ id, patches }: { id: number; patches: readonly PatchSummary[] }) {
  return (
    <section className={classes.listed}>
      <h3>{count(patches.length, "patch", "patches")}</h3>
      <ol className={classes.patches}>
        {patches.map((patch, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: patches are identified by their position
          <li key={at}>
            <Patch id={id} patch={patch} at={at} of={patches.length} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Patch({ id, patch, at, of }: { id: number; patch: PatchSummary; at: number; of: number }) {
  return (
    <Details
      summary={
        <>
          <strong>{oneLine(patch.subject)}</strong>{" "}
          <span className="nowrap">
            +{patch.insertions} {"\u2212"}
            {patch.deletions}
          </span>
          <span className={classes.author}>
            {oneLine(patch.author)}: {patch.files.map(oneLine).join(", ")}
          </span>
        </>
      }
    >
      <PatchText id={id} at={at} of={of} />
    </Details>
  );
}

/** Disclosure that renders its content only when open. */
function Details({ summary, children }: { summary: ReactNode; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {open && children}
    </details>
  );
}

function PatchText({ id, at, of }: { id: number; at: number; of: number }) {
  const { data: mbox, error } = useQuery(fileQuery(seriesUrl(id)));
  const text = useMemo(() => {
    if (!mbox) return null;
    const mails = splitMbox(mbox.plainText());
    // If the numbers of mails and patches differ, show the whole mbox rather than the wrong mail.
    return mails.length === of ? (mails[at] as string) : mbox.plainText();
  }, [mbox, at, of]);
  if (error) return <p>{error.message}</p>;
  if (text === null) return <Skeleton lines={12} />;
  return (
    <>
      <CopyButton text={text} label="Copy patch" />
      <Scroll name={`Patch ${at + 1}`} className={classes.patch}>
        <pre>
          {diffRuns(clean(text)).map((run, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: runs never change
            <span key={place} data-diff={run.kind}>
              {run.text}
            </span>
          ))}
        </pre>
      </Scroll>
    </>
  );
}

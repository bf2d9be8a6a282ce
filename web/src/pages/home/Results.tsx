import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { submissionsQuery } from "@/api/queries";
import type { SubmissionSummary } from "@/api/types";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Section } from "@/parts/Page";
import { Skeleton } from "@/parts/Skeleton";
import { cellsByTopology, type TopologyCells, topologyColumns, worstOf } from "@/parts/topologyCells";
import classes from "./HomePage.module.css";

const SHOWN = 10;
/** Submissions to request: more than rows, since canceled ones are left out and a series may have several. */
const REQUESTED = 40;
const COLUMNS = 5;
const REFRESH_MS = 15_000;

/** A series with what its submissions found. */
export interface SeriesRow {
  newest: SubmissionSummary;
  submissions: number;
  cells: TopologyCells;
}

/** Recent series by topology. */
export function Results() {
  const { data } = useQuery({
    ...submissionsQuery({ active: false, sort: "ended", limit: REQUESTED }),
    refetchInterval: REFRESH_MS,
  });
  const rows = useMemo(() => data && rowsOf(data.items).slice(0, SHOWN), [data]);
  return (
    <Section
      id="results"
      title="Results"
      actions={
        <>
          <Link to="/submissions">All</Link>
          <Link to="/submissions" search={{ verdict: "regression" }}>
            Regressions
          </Link>
        </>
      }
    >
      {!rows ? (
        <Skeleton lines={SHOWN} height="2.6rem" />
      ) : rows.length === 0 ? (
        <EmptyState title="No results yet">
          Paste a series above: the lab proposes what to measure and says how long it takes, before you
          submit. An operator submits the examples with <code>make demo</code>.
        </EmptyState>
      ) : (
        <>
          <DataTable
            caption="Recent series by topology"
            captionHidden
            copyable={false}
            columns={columnsOf(rows)}
            rows={rows}
            rowKey={row => row.newest.id}
            fixedOrder
            narrow="stack"
          />
          <p className="muted">
            + better, − worse, = the same within the threshold, ? can't tell yet. The worst judged metric
            decides a cell.
          </p>
        </>
      )}
    </Section>
  );
}

/** Group submissions by series, the newest first, without canceled ones. */
export function rowsOf(submissions: readonly SubmissionSummary[]): SeriesRow[] {
  const kept = submissions.filter(each => each.outcome !== "canceled");
  const groups = Map.groupBy(kept, each => each.series_key || `submission ${each.id}`);
  return [...groups.values()].map(group => {
    const byAge = group.toSorted((a, b) => b.id - a.id);
    return {
      newest: byAge[0] as SubmissionSummary,
      submissions: group.length,
      cells: cellsByTopology(byAge),
    };
  });
}

function columnsOf(rows: readonly SeriesRow[]): Column<SeriesRow>[] {
  return [
    {
      id: "series",
      header: "Series",
      rowHeader: true,
      value: row => row.newest.title,
      cell: row => <Series of={row} />,
    },
    ...topologyColumns(rows, row => row.cells, COLUMNS),
    { id: "when", header: "When", bare: true, value: row => row.newest.finished_at, time: true },
  ];
}

function Series({ of: { newest, submissions, cells } }: { of: SeriesRow }) {
  const worst = cells.size > 0 ? worstOf([...cells.values()]) : undefined;
  const failure = newest.outcome === "failed" ? newest.failure : null;
  return (
    <>
      <Link to={newest.outcome === "passed" ? "/r/$id" : "/submissions/$id"} params={{ id: newest.id }}>
        {oneLine(newest.title) || `Submission ${newest.id}`}
      </Link>{" "}
      <span className="fine">
        {newest.version != null && newest.version > 1 && `v${newest.version} `}
        {submissions > 1 && (
          <Link to="/series/$id" params={{ id: newest.id }}>
            {submissions} submissions
          </Link>
        )}
      </span>
      <span className={classes.says} data-bad={worst?.verdict === "regression" || undefined}>
        {failure
          ? `not measured (${failure.kind}): ${oneLine(failure.summary)}`
          : worst && oneLine(worst.headline)}
      </span>
    </>
  );
}

/** A series: its versions with the verdicts of all their submissions by topology, and a link to its discussion. */
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Fragment } from "react";
import { submissionQuery, versionsQuery } from "@/api/queries";
import type { SubmissionVersion } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Page, Section } from "@/parts/Page";
import { StateBadge } from "@/parts/StateBadge";
import { cellsByTopology, type TopologyCells, topologyColumns } from "@/parts/topologyCells";
import { RangeDiff } from "./RangeDiff";

const route = getRouteApi("/series/$id");
const COLUMNS = 8;

/** A version of the series with its submissions, the newest first. */
export interface VersionRow {
  version: number | null;
  submissions: SubmissionVersion[];
  cells: TopologyCells;
}

export function SeriesPage() {
  const { id } = route.useParams();
  const { data: submissions } = useSuspenseQuery(versionsQuery(id));
  const { data: last } = useQuery(submissionQuery(id));
  const rows = versionsOf(submissions);
  const newest = rows[0]?.submissions[0];
  const thread = last?.apply.thread;
  return (
    <Page
      title={newest ? oneLine(newest.title) || `Series of submission ${id}` : `Series of submission ${id}`}
      trail={<Link to="/submissions">Submissions</Link>}
      lead={`${count(rows.length, "version")}, ${count(submissions.length, "submission")}${newest?.author ? `, by ${oneLine(newest.author)}` : ""}.`}
      actions={
        <>
          {thread && <a href={thread.url}>Discussion</a>}
          <Link to="/submit">Submit another version</Link>
        </>
      }
    >
      <Section
        id="versions"
        title="Versions by topology"
        lead="The worst judged metric decides a cell. A newer submission of a version replaces an older one on the same device type."
      >
        <DataTable
          caption="Versions by topology"
          captionHidden
          columns={[VERSION, ...topologyColumns(rows, row => row.cells, COLUMNS), SUBMISSIONS, WHEN]}
          rows={rows}
          rowKey={row => `${row.version}`}
          fixedOrder
          narrow="stack"
        />
      </Section>
      {rows.length > 1 && (
        <Section id="changes" title="What changed between versions">
          <ul className="stack">
            {rows.slice(0, -1).map((row, at) => {
              const [right, left] = [row.submissions[0], rows[at + 1]?.submissions[0]];
              return (
                right &&
                left && (
                  <li key={right.id}>
                    <RangeDiff
                      first={left.id}
                      second={right.id}
                      title={`Patches of ${nameOf(rows[at + 1] as VersionRow)} and ${nameOf(row)}`}
                    />
                    <Link to="/compare" search={{ left: `${left.id}`, right: `${right.id}` }}>
                      Compare the figures of {nameOf(rows[at + 1] as VersionRow)} and {nameOf(row)}
                    </Link>
                  </li>
                )
              );
            })}
          </ul>
        </Section>
      )}
    </Page>
  );
}

/** Group the submissions of a series by version, the newest first. */
export function versionsOf(submissions: readonly SubmissionVersion[]): VersionRow[] {
  const byAge = submissions.toSorted((a, b) => b.id - a.id);
  return [...Map.groupBy(byAge, each => each.version)]
    .map(([version, own]) => ({
      version,
      submissions: own,
      cells: cellsByTopology(own.filter(each => each.outcome !== "canceled")),
    }))
    .toSorted((a, b) => (b.version ?? 0) - (a.version ?? 0));
}

const nameOf = ({ version }: VersionRow) => (version === null ? "no version" : `v${version}`);

const VERSION: Column<VersionRow> = {
  id: "version",
  header: "Version",
  rowHeader: true,
  value: nameOf,
};

const SUBMISSIONS: Column<VersionRow> = {
  id: "submissions",
  header: "Submissions",
  wrap: true,
  value: row => row.submissions.map(each => each.id).join(", "),
  cell: row =>
    row.submissions.map((each, at) => (
      <Fragment key={each.id}>
        {at > 0 && " "}
        <Link to={each.finished_at ? "/r/$id" : "/submissions/$id"} params={{ id: each.id }}>
          {each.id}
        </Link>{" "}
        <StateBadge state={each.state} outcome={each.outcome} />
      </Fragment>
    )),
};

const WHEN: Column<VersionRow> = {
  id: "when",
  header: "When",
  bare: true,
  value: row => row.submissions[0]?.created_at,
  time: true,
};

/** Searches for the commit that has changed a metric. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { bisectionsQuery } from "@/api/bisectionQueries";
import type { Bisection } from "@/api/types";
import { oneLine } from "@/lib/words";
import { CommandBlock } from "@/parts/CommandBlock";
import type { Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { PagedTable } from "@/parts/PagedTable";
import { StateBadge } from "@/parts/StateBadge";
import { BisectLink } from "./BisectLink";
import classes from "./bisections.module.css";
import { cellText, culpritText, goesOn, revisionText, subjectOf } from "./labels";

const PAGE = 50;
const REFRESH_MS = 30_000;
const route = getRouteApi("/bisections");
const COMMAND = "wqlab bisect --good v6.16 --bad for-next --target PLAN@DEVICE_TYPE --metric NAME --wait";

export function BisectionsPage() {
  const { cursor } = route.useSearch();
  const { data: page } = useQuery({
    ...bisectionsQuery({ limit: PAGE, ...(cursor && { cursor }) }),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Page
      title="Bisections"
      lead={
        <>
          Searches for the commit that has changed a metric, or from which on the kernel fails.{" "}
          <a href="/docs/bisect/">How a commit is found</a>
        </>
      }
      actions={<BisectLink of={{}}>Begin a bisection</BisectLink>}
    >
      <PagedTable
        page={page}
        cursor={cursor}
        size={PAGE}
        lines={20}
        caption="Bisections"
        columns={COLUMNS}
        rowKey={of => of.id}
        none={
          <EmptyState title="No bisections">
            <p>A confirmed shift of a watched tree begins one by itself. From the command line:</p>
            <CommandBlock commands={[{ name: "wqlab", text: COMMAND }]} />
          </EmptyState>
        }
      />
    </Page>
  );
}

const COLUMNS: readonly Column<Bisection>[] = [
  {
    id: "what",
    header: "Searched",
    rowHeader: true,
    value: of => `${subjectOf(of)} on ${of.request.device_type}, ${cellText(of)}`,
    cell: of => (
      <>
        <Link to="/bisections/$id" params={{ id: of.id }} className={classes.target}>
          {subjectOf(of)} on {of.request.device_type}
        </Link>{" "}
        <span className="muted">{cellText(of)}</span>
      </>
    ),
  },
  {
    id: "state",
    header: "State",
    value: of => of.state.replaceAll("_", " "),
    cell: of => <StateBadge state={of.state} />,
  },
  {
    id: "range",
    header: "Good and bad",
    wrap: true,
    value: of => `${revisionText(of.request.good)}..${revisionText(of.request.bad)}`,
    cell: of => (
      <code className={classes.long}>
        {revisionText(of.request.good)}..{revisionText(of.request.bad)}
      </code>
    ),
  },
  {
    id: "commits",
    header: "Commits",
    hint: "Along first parents",
    numeric: true,
    value: of => of.commits,
  },
  {
    id: "culprit",
    header: "Culprit",
    wrap: true,
    value: culpritText,
    cell: of => <Culprit of={of} />,
  },
  {
    id: "boots",
    header: "Boots",
    hint: "Of the search; in brackets those of a plain bisection",
    numeric: true,
    value: of => of.boots,
    text: of => (of.plain_boots ? `${of.boots} (${of.plain_boots})` : String(of.boots)),
  },
  { id: "owner", header: "Owner", value: of => of.watch ?? of.owner },
  { id: "created", header: "Begun", value: of => of.created_at, time: true },
];

function Culprit({ of }: { of: Bisection }) {
  if (!of.culprit) return <span className="muted">{goesOn(of) ? "not yet" : "none"}</span>;
  return (
    <>
      {goesOn(of) && "suspected: "}
      <code>{culpritText(of)}</code> <span className={classes.long}>{oneLine(of.culprit.subject)}</span>
    </>
  );
}

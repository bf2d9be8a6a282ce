/** Searches for the commit that has changed a metric. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { bisectionsQuery } from "@/api/bisectionQueries";
import { usePaged } from "@/api/paged";
import type { Bisection } from "@/api/types";
import { oneLine } from "@/lib/words";
import { CommandBlock } from "@/parts/CommandBlock";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { Pager } from "@/parts/Pager";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
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
  const { data: page, error } = useQuery({
    ...bisectionsQuery({ limit: PAGE, ...(cursor && { cursor }) }),
    refetchInterval: REFRESH_MS,
  });
  const paged = usePaged(cursor, page, PAGE);
  if (error && !page) throw error;
  return (
    <Page
      title="Bisections"
      lead={
        <>
          Searches for the commit that has changed a metric, or from which on the kernel fails.{" "}
          <a href="/docs/bisect/">How a commit is found</a>
        </>
      }
      actions={
        <>
          <Link to="/history">History</Link>
          <BisectLink of={{}}>Begin a bisection</BisectLink>
        </>
      }
    >
      {!page ? (
        <Skeleton lines={20} height="1.8rem" />
      ) : page.items.length === 0 ? (
        <EmptyState title="No bisections" action={<BisectLink of={{}}>Begin one</BisectLink>}>
          <p>A confirmed shift of a watched tree begins one by itself. From the command line:</p>
          <CommandBlock commands={[{ name: "wqlab", text: COMMAND }]} />
        </EmptyState>
      ) : (
        <DataTable
          caption="Bisections"
          captionHidden
          columns={COLUMNS}
          rows={page.items}
          rowKey={of => of.id}
          fixedOrder
          narrow="stack"
        />
      )}
      <Pager paged={paged} shown={page?.items.length ?? 0} total={page?.total ?? 0} />
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
  {
    id: "created",
    header: "Begun",
    value: of => of.created_at,
    cell: of => <RelativeTime at={of.created_at} />,
  },
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

import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { usePaged } from "@/api/paged";
import { type SubmissionFilters, submissionsQuery } from "@/api/queries";
import type { SubmissionSummary } from "@/api/types";
import { count, grouped } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { VerdictCounts } from "@/parts/VerdictBadge";
import { Filters } from "./Filters";
import { Pager } from "./Pager";
import type { submissionsSearch } from "./route";

const PAGE = 50;
const route = getRouteApi("/submissions");

const columns: Column<SubmissionSummary>[] = [
  { id: "id", header: "no.", numeric: true, value: of => of.id },
  {
    id: "title",
    header: "title",
    rowHeader: true,
    value: of => of.title,
    cell: of => (
      <Link to="/submissions/$id" params={{ id: of.id }}>
        {oneLine(of.title) || "untitled"}
      </Link>
    ),
  },
  {
    id: "state",
    header: "state",
    value: of => of.outcome ?? of.state,
    cell: of => <StateBadge state={of.state} outcome={of.outcome} />,
  },
  {
    id: "verdicts",
    header: "verdicts",
    value: of =>
      Object.entries(of.verdicts)
        .map(([verdict, many]) => `${verdict} ${many}`)
        .join(", "),
    cell: of => <VerdictCounts verdicts={of.verdicts} />,
  },
  { id: "tree", header: "tree", value: of => of.tree },
  { id: "owner", header: "owner", value: of => of.owner },
  {
    id: "created",
    header: "submitted",
    value: of => of.created_at,
    cell: of => <RelativeTime at={of.created_at} />,
  },
];

export function SubmissionsPage() {
  const search = route.useSearch();
  const { data: page, isPlaceholderData, error } = useQuery(submissionsQuery(asked(search)));
  const paged = usePaged(search.cursor, page, PAGE);
  if (error && !page) throw error;
  const filtered = Object.entries(search).some(([name, value]) => name !== "cursor" && value !== "");

  return (
    <Page
      title="Submissions"
      lead={
        page
          ? `${count(page.total, filtered ? "match" : "submission", filtered ? "matches" : undefined)}, newest first`
          : "\u00a0"
      }
    >
      <Filters search={search} />
      <div aria-busy={isPlaceholderData || !page}>
        {!page ? (
          <Skeleton lines={12} height="1.5rem" />
        ) : page.items.length === 0 ? (
          <EmptyState
            title={filtered ? "No submission matches" : "Nothing was submitted yet"}
            action={
              <Link to={filtered ? "/submissions" : "/submit"}>
                {filtered ? "Clear all filters" : "Submit a series"}
              </Link>
            }
          />
        ) : (
          <DataTable
            caption={`Submissions, ${grouped(page.total)} in all`}
            captionHidden
            columns={columns}
            rows={page.items}
            rowKey={of => of.id}
            fixedOrder
          />
        )}
      </div>
      <Pager paged={paged} shown={page?.items.length ?? 0} total={page?.total ?? 0} />
    </Page>
  );
}

function asked(search: typeof submissionsSearch.defaults): SubmissionFilters {
  const { since, until, ...rest } = search;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== ""));
  // Days are the reader's: from midnight of the first to midnight after the last.
  if (since) given.since = new Date(`${since}T00:00:00`).toISOString();
  if (until) given.until = new Date(new Date(`${until}T00:00:00`).getTime() + 86_400_000).toISOString();
  return { ...given, limit: PAGE };
}

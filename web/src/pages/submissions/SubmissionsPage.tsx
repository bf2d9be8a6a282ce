import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { usePaged } from "@/api/paged";
import { submissionsQuery } from "@/api/queries";
import { count } from "@/lib/numbers";
import { DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { Pager } from "@/parts/Pager";
import { Skeleton } from "@/parts/Skeleton";
import { columns } from "./columns";
import { Filters } from "./Filters";
import classes from "./SubmissionsPage.module.css";
import { filtersOf, toFilters } from "./search";

const PAGE = 50;
const route = getRouteApi("/submissions");

export function SubmissionsPage() {
  const search = route.useSearch();
  const { data: page, isPlaceholderData } = useQuery(submissionsQuery(toFilters(search, PAGE)));
  const paged = usePaged(search.cursor, page, PAGE);
  const narrowed = Object.keys(filtersOf(search)).length > 0;

  return (
    <Page
      title="Submissions"
      lead={
        page
          ? count(page.total, narrowed ? "match" : "submission", narrowed ? "matches" : undefined)
          : "\u00a0"
      }
    >
      <Filters search={search} />
      <div
        aria-busy={isPlaceholderData || !page}
        className={classes.list}
        data-old={isPlaceholderData || undefined}
      >
        {!page ? (
          <Skeleton lines={25} height="1.5rem" />
        ) : page.items.length === 0 ? (
          <NoSubmissions narrowed={narrowed} />
        ) : (
          <DataTable
            caption="Submissions"
            captionHidden
            columns={columns}
            rows={page.items}
            rowKey={of => of.id}
            fixedOrder
            narrow="stack"
          />
        )}
      </div>
      <Pager paged={paged} shown={page?.items.length ?? 0} total={page?.total ?? 0} />
    </Page>
  );
}

function NoSubmissions({ narrowed }: { narrowed: boolean }) {
  if (narrowed) {
    return (
      <EmptyState title="No matching submissions" action={<Link to="/submissions">Clear all filters</Link>}>
        Remove a filter or change the search text.
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No submissions yet" action={<Link to="/submit">Submit a series</Link>}>
      Submissions of all users are listed here with their verdicts.
    </EmptyState>
  );
}

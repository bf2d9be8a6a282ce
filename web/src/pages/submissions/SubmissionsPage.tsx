import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { submissionsQuery } from "@/api/queries";
import { count } from "@/lib/numbers";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { PagedTable } from "@/parts/PagedTable";
import { columns } from "./columns";
import { Filters } from "./Filters";
import classes from "./SubmissionsPage.module.css";
import { filtersOf, toFilters } from "./search";

const PAGE = 50;
const route = getRouteApi("/submissions");

export function SubmissionsPage() {
  const search = route.useSearch();
  const { data: page, isPlaceholderData } = useQuery(submissionsQuery(toFilters(search, PAGE)));
  const narrowed = Object.keys(filtersOf(search)).length > 0;

  return (
    <Page
      title="Submissions"
      lead={
        page
          ? `${count(page.total, narrowed ? "matching series" : "series", narrowed ? "matching series" : "series")}, each with its newest ${narrowed ? "match" : "submission"}`
          : "\u00a0"
      }
    >
      <Filters search={search} />
      <div
        aria-busy={isPlaceholderData || !page}
        className={classes.list}
        data-old={isPlaceholderData || undefined}
      >
        <PagedTable
          page={page}
          cursor={search.cursor}
          size={PAGE}
          lines={25}
          caption="Submissions"
          columns={columns}
          rowKey={of => of.id}
          unmatched={narrowed ? "No matching submissions" : ""}
          none={
            <EmptyState title="No submissions yet" action={<Link to="/submit">Submit a series</Link>}>
              Submissions of all users are listed here with their verdicts.
            </EmptyState>
          }
        />
      </div>
    </Page>
  );
}

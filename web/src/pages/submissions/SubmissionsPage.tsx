import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { usePaged } from "@/api/paged";
import { submissionsQuery } from "@/api/queries";
import { count } from "@/lib/numbers";
import { DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { Pager } from "@/parts/Pager";
import { Skeleton } from "@/parts/Skeleton";
import { columns, compareColumn } from "./columns";
import { Filters } from "./Filters";
import classes from "./SubmissionsPage.module.css";
import { filtersOf, toFilters } from "./search";

const PAGE = 50;
const MAX_TITLE_LENGTH = 80;
const route = getRouteApi("/submissions");

export function SubmissionsPage() {
  const search = route.useSearch();
  const { data: page, isPlaceholderData } = useQuery(submissionsQuery(toFilters(search, PAGE)));
  const paged = usePaged(search.cursor, page, PAGE);
  const [chosen, setChosen] = useState<readonly number[]>([]);
  const inSeries = search.series !== "";
  const shown = useMemo(
    () => (inSeries ? [compareColumn(chosen, setChosen), ...columns] : columns),
    [inSeries, chosen],
  );
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
      {inSeries && <Versions series={search.series} chosen={chosen} />}
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
            columns={shown}
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

/** Bar for comparing two versions of a series. */
function Versions({ series, chosen }: { series: string; chosen: readonly number[] }) {
  const [first, second] = chosen.toSorted((a, b) => a - b);
  const title = series.length > MAX_TITLE_LENGTH ? `${series.slice(0, MAX_TITLE_LENGTH)}…` : series;
  return (
    <div className={classes.versions}>
      <span>
        Versions of <strong>{title}</strong>
      </span>
      {first !== undefined && second !== undefined ? (
        <Link to="/compare" search={{ left: `${first}`, right: `${second}` }}>
          Compare {first} with {second}
        </Link>
      ) : (
        <span className="muted">Select two versions to compare.</span>
      )}
    </div>
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

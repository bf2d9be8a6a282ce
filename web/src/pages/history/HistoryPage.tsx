/** What has changed on watched trees, and the metrics that are followed. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { historyLinesQuery, historyShiftsQuery } from "@/api/historyQueries";
import { usePaged } from "@/api/paged";
import { namesQuery } from "@/api/queries";
import { treeWatchesQuery } from "@/api/watchQueries";
import { count, metricName } from "@/lib/numbers";
import { DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FilterBar, SelectFilter } from "@/parts/FilterBar";
import { Page, Section } from "@/parts/Page";
import { Pager } from "@/parts/Pager";
import { useNow } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./history.module.css";
import { LINE_COLUMNS } from "./Lines";
import { ShiftGroups } from "./ShiftGroups";
import {
  DAYS,
  type HistorySearch,
  isNarrowed,
  matchesLine,
  ROLES,
  toLineFilters,
  toShiftFilters,
} from "./search";

const PAGE = 100;
const MOST_SHIFTS = 200;
/** Poll: there are no events for the history. */
const REFRESH_MS = 60_000;
const route = getRouteApi("/history");
/** Match all search parameters; otherwise links with a subset of them would count as active. */
const EXACT = { exact: true };

export function HistoryPage() {
  const search = route.useSearch();
  const lines = useQuery({ ...historyLinesQuery(toLineFilters(search, PAGE)), refetchInterval: REFRESH_MS });
  const now = useNow(REFRESH_MS);
  const shifts = useQuery({
    ...historyShiftsQuery(toShiftFilters(search, now, MOST_SHIFTS)),
    refetchInterval: REFRESH_MS,
  });
  // The filters' options: all is shown at once, so that nothing moves while the page loads.
  const options = [useQuery(treeWatchesQuery), useQuery(namesQuery)];
  const narrowed = isNarrowed(search);
  const loading = !lines.data || !shifts.data || options.some(request => request.isPending);
  const unused = lines.data?.total === 0 && shifts.data?.total === 0 && !narrowed;
  return (
    <Page
      title="History"
      lead={
        <>
          Metrics over the heads of watched trees, and where their levels have shifted.{" "}
          <a href="/docs/history/">How shifts are found and confirmed</a>
        </>
      }
    >
      {loading ? (
        <Skeleton lines={24} height="1.8rem" />
      ) : unused && search.cursor === "" ? (
        <NoHistory />
      ) : (
        <>
          <Filters search={search} listed={lines.data.items} />
          <Changes search={search} page={shifts.data} lines={lines.data} />
          <Lines search={search} page={lines.data} narrowed={narrowed} />
        </>
      )}
    </Page>
  );
}

type LinePage = Awaited<ReturnType<NonNullable<ReturnType<typeof historyLinesQuery>["queryFn"]>>>;
type ShiftPage = Awaited<ReturnType<NonNullable<ReturnType<typeof historyShiftsQuery>["queryFn"]>>>;

function NoHistory() {
  const { data: trees } = useQuery(treeWatchesQuery);
  if (!trees) return <Skeleton lines={4} height="1.8rem" />;
  if (trees.length > 0) {
    return (
      <EmptyState
        title="No head has figures yet"
        action={<a href="/docs/intake/#what-becomes-of-a-head">What becomes of a head</a>}
      >
        {count(trees.length, "tree is", "trees are")} watched: {trees.map(each => each.spec.name).join(", ")}.
        The first head of a branch is its starting point; a line begins when the next head was measured.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      title="No tree is watched"
      action={
        <>
          <Link to="/watches">Watched trees</Link>
          <a href="/docs/intake/#watched-trees">How to watch one</a>
        </>
      }
    >
      The lab follows the branches and tags of a watched tree and measures each new head against the one
      before. An administrator adds a tree.
    </EmptyState>
  );
}

interface FiltersProps {
  search: HistorySearch;
  listed: LinePage["items"];
}

function Filters({ search, listed }: FiltersProps) {
  const navigate = useNavigate({ from: "/history" });
  const { data: trees = [] } = useQuery(treeWatchesQuery);
  const { data: names } = useQuery(namesQuery);
  const set = (change: Partial<HistorySearch>) =>
    void navigate({
      search: before => ({ ...before, ...change, cursor: "" }),
      replace: true,
      resetScroll: false,
    });
  const plans = Object.entries(names?.plans ?? {});
  const chosen = plans.filter(([plan]) => search.plan === "" || plan === search.plan);
  const options = {
    tree: sorted([...trees.map(each => each.spec.name), ...listed.map(each => each.tree)]),
    plan: sorted([...plans.map(([plan]) => plan), ...listed.map(each => each.plan)]),
    type: sorted([...(names?.device_types ?? []), ...listed.map(each => each.device_type)]),
    metric: sorted([...chosen.flatMap(([, metrics]) => metrics), ...listed.map(each => each.metric)]),
  };
  return (
    <FilterBar>
      <SelectFilter label="Tree" value={search.tree} from={options.tree} onValue={tree => set({ tree })} />
      <SelectFilter label="Plan" value={search.plan} from={options.plan} onValue={plan => set({ plan })} />
      <SelectFilter
        label="Device type"
        value={search.type}
        from={options.type}
        onValue={type => set({ type })}
      />
      <SelectFilter
        label="Metric"
        value={search.metric}
        from={options.metric}
        name={metricName}
        onValue={metric => set({ metric })}
      />
      <SelectFilter label="Role" value={search.role} from={ROLES} onValue={role => set({ role })} />
    </FilterBar>
  );
}

function sorted(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted((a, b) => a.localeCompare(b));
}

interface ChangesProps {
  search: HistorySearch;
  page: ShiftPage;
  lines: LinePage;
}

const SPAN_TITLES = { "7": "This week", "30": "Last 30 days", "90": "Last 90 days" };

function Changes({ search, page, lines }: ChangesProps) {
  const shifts = useMemo(() => page.items.filter(shift => matchesLine(search, shift.line)), [page, search]);
  // Only a whole list says on which device types nothing has shifted.
  const types = !lines.next && search.cursor === "" ? lines.items.map(each => each.device_type) : [];
  return (
    <Section
      id="changes"
      title={SPAN_TITLES[search.days]}
      actions={
        <nav aria-label="Days" className={classes.spans}>
          {DAYS.map(days => (
            <Link
              key={days}
              from="/history"
              to="."
              search={before => ({ ...before, days })}
              resetScroll={false}
              activeOptions={EXACT}
              aria-current={days === search.days ? "true" : undefined}
              data-chosen={days === search.days || undefined}
              className={classes.span}
            >
              {days} days
            </Link>
          ))}
        </nav>
      }
    >
      {shifts.length === 0 ? (
        <EmptyState title={`No shift was opened in the last ${search.days} days`}>
          {isNarrowed(search) ? "None that matches the filters." : "Each metric has kept its level."}
        </EmptyState>
      ) : (
        <ShiftGroups shifts={shifts} types={sorted(types)} />
      )}
      {page.next && (
        <p className="muted">
          The {page.items.length} newest of {count(page.total, "shift")} are looked at. Filter by tree, plan
          or device type to see the others.
        </p>
      )}
    </Section>
  );
}

interface LinesProps {
  search: HistorySearch;
  page: LinePage;
  narrowed: boolean;
}

function Lines({ search, page, narrowed }: LinesProps) {
  const paged = usePaged(search.cursor, page, PAGE);
  return (
    <Section id="lines" title={`Metrics (${count(page.total, "line")})`}>
      {page.items.length === 0 ? (
        <EmptyState
          title={narrowed ? "No line matches" : "No line is on this page"}
          action={<Link to="/history">Clear all filters</Link>}
        />
      ) : (
        <DataTable
          caption="Metrics over heads"
          captionHidden
          columns={LINE_COLUMNS}
          rows={page.items}
          rowKey={of => of.id}
          fixedOrder={paged.older !== null || paged.newer !== null}
          narrow="stack"
        />
      )}
      <Pager paged={paged} shown={page.items.length} total={page.total} />
    </Section>
  );
}

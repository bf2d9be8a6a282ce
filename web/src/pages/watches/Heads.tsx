import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Fragment } from "react";
import type { TreeWatch, Verdict, WatchedHead } from "@/api/types";
import { headsQuery } from "@/api/watchQueries";
import { count } from "@/lib/numbers";
import { humanize, oneLine } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FilterBar, SelectFilter } from "@/parts/FilterBar";
import { Section } from "@/parts/Page";
import { PagedTable } from "@/parts/PagedTable";
import { StateBadge } from "@/parts/StateBadge";
import { submissionColumn } from "@/parts/submissionColumn";
import { VerdictCounts } from "@/parts/VerdictBadge";
import { notesOf, relatedText, short } from "./head";
import { HEAD_MEANING, HEAD_STATES } from "./labels";
import { toHeadFilters, type WatchSearch } from "./search";
import classes from "./watches.module.css";

const PAGE = 50;
const route = getRouteApi("/watches/$name");

/** The heads that were seen, newest first: what each was compared with, or why it was not measured. */
export function Heads({ spec, refreshMs }: { spec: TreeWatch; refreshMs: number }) {
  const { name, branches = [], tags = [] } = spec;
  const search = route.useSearch();
  const navigate = useNavigate({ from: "/watches/$name" });
  const { data: page } = useQuery({
    ...headsQuery(name, toHeadFilters(search, PAGE)),
    refetchInterval: refreshMs,
  });
  const set = (change: Partial<WatchSearch>) =>
    void navigate({
      search: before => ({ ...before, ...change, cursor: "" }),
      replace: true,
      resetScroll: false,
    });
  return (
    <Section id="heads" title="Heads" lead={page ? `${count(page.total, "head")}, newest first.` : "\u00a0"}>
      <FilterBar>
        <SelectFilter
          label="State"
          value={search.head}
          from={HEAD_STATES}
          name={humanize}
          onValue={head => set({ head })}
        />
        <SelectFilter
          label="Branch or tags"
          value={search.ref}
          from={[...branches, ...tags]}
          onValue={ref => set({ ref })}
        />
      </FilterBar>
      <PagedTable
        page={page}
        cursor={search.cursor}
        size={PAGE}
        caption="Heads"
        columns={COLUMNS}
        rowKey={of => of.id}
        unmatched={search.head || search.ref ? "No head matches" : ""}
        none={
          <EmptyState title="No heads yet">
            The first read of the tree finds the head of each branch. The lab measures heads that come after
            it.
          </EmptyState>
        }
      />
    </Section>
  );
}

const COLUMNS: Column<WatchedHead>[] = [
  {
    id: "head",
    header: "Head",
    rowHeader: true,
    value: of => `${of.name} ${of.commit}`,
    cell: of => (
      <span className={classes.long}>
        <code title={of.commit}>{short(of.commit)}</code> {oneLine(of.name)}
        {of.ref !== of.name && <span className="muted"> of {oneLine(of.ref)}</span>}
      </span>
    ),
  },
  {
    id: "state",
    header: "State",
    value: of => humanize(of.state),
    cell: of => (
      <span title={HEAD_MEANING[of.state]}>
        <StateBadge state={of.state} />
      </span>
    ),
  },
  {
    id: "baseline",
    header: "Compared with",
    hint: "The last head that was measured before, and the number of commits since",
    value: of => (of.compared_with ? `${of.compared_with.commit} ${relatedText(of)}` : null),
    cell: of =>
      of.compared_with && (
        <>
          <code title={of.compared_with.commit}>{short(of.compared_with.commit)}</code>
          <span className={classes.second}>{relatedText(of)}</span>
        </>
      ),
  },
  {
    id: "verdicts",
    header: "Verdicts",
    value: of => (of.verdicts ?? []).map(humanize).join(", "),
    cell: of => (of.verdicts?.length ? <VerdictCounts verdicts={counted(of.verdicts)} /> : null),
  },
  submissionColumn,
  {
    id: "devices",
    header: "Devices",
    hint: "Which device measured it",
    value: of => [...new Set(Object.values(of.devices))].join(", "),
    cell: of => (Object.keys(of.devices).length > 0 ? <Devices of={of} /> : null),
  },
  {
    id: "notes",
    header: "Notes",
    hint: "Why it is in its state, whether its figures continue those before, and what is to bisect",
    wrap: true,
    value: of => notesOf(of).join("; "),
    cell: of => (
      <span className={classes.notes}>
        {notesOf(of).map(note => (
          <span key={note}>{note}</span>
        ))}
      </span>
    ),
  },
  { id: "seen", header: "Seen", value: of => of.seen_at, time: true },
];

function Devices({ of }: { of: WatchedHead }) {
  const names = [...new Set(Object.values(of.devices))];
  return names.map((name, at) => (
    <Fragment key={name}>
      {at > 0 && ", "}
      <Link to="/lab/$name" params={{ name }}>
        {name}
      </Link>
    </Fragment>
  ));
}

function counted(verdicts: readonly Verdict[]): Partial<Record<Verdict, number>> {
  const found: Partial<Record<Verdict, number>> = {};
  for (const verdict of verdicts) found[verdict] = (found[verdict] ?? 0) + 1;
  return found;
}

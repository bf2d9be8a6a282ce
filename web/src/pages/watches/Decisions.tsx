import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import type { PreviewedSeries, WatchDecision } from "@/api/types";
import { decisionsQuery } from "@/api/watchQueries";
import { count } from "@/lib/numbers";
import { humanize, oneLine } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FilterBar, SelectFilter } from "@/parts/FilterBar";
import { Section } from "@/parts/Page";
import { PagedTable } from "@/parts/PagedTable";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { submissionColumn } from "@/parts/submissionColumn";
import { DECISION_MEANING, DECISION_STATES, REASONS, reasonText } from "./labels";
import { toDecisionFilters, type WatchSearch } from "./search";
import classes from "./watches.module.css";

const PAGE = 50;
const REFRESH_MS = 15_000;
const route = getRouteApi("/watches/$name");

/** What the watch of a list decided on each series, newest first. */
export function Decisions({ name }: { name: string }) {
  const search = route.useSearch();
  const navigate = useNavigate({ from: "/watches/$name" });
  const { data: page } = useQuery({
    ...decisionsQuery(name, toDecisionFilters(search, PAGE)),
    refetchInterval: REFRESH_MS,
  });
  const set = (change: Partial<WatchSearch>) =>
    void navigate({
      search: before => ({ ...before, ...change, cursor: "" }),
      replace: true,
      resetScroll: false,
    });
  return (
    <Section
      id="decisions"
      title="Decisions"
      lead={
        page && page.total > 0
          ? `${count(page.total, "series", "series")}, newest first. Those that it does not want are kept for 30 days.`
          : "\u00a0"
      }
    >
      <FilterBar>
        <SelectFilter
          label="State"
          value={search.decision}
          from={DECISION_STATES}
          name={humanize}
          onValue={decision => set({ decision })}
        />
        <SelectFilter
          label="Reason"
          value={search.reason}
          from={REASONS}
          name={reasonText}
          onValue={reason => set({ reason })}
        />
      </FilterBar>
      <PagedTable
        page={page}
        cursor={search.cursor}
        size={PAGE}
        caption="Decisions"
        columns={COLUMNS}
        rowKey={of => of.id}
        unmatched={search.decision || search.reason ? "No decision matches" : ""}
        none={
          <EmptyState title="No decisions yet">
            Once the watch is enabled, the lab decides on every complete series of the list and shows the
            decision here with its reason.
          </EmptyState>
        }
      />
    </Section>
  );
}

/** Subject of a series, with a link to its first mail in the archive. */
export function Subject({ of }: { of: Pick<WatchDecision | PreviewedSeries, "subject" | "url"> }) {
  const text = oneLine(of.subject) || "(no subject)";
  return (
    <span className={classes.long}>
      {of.url ? (
        <a href={of.url} rel="noreferrer">
          {text}
        </a>
      ) : (
        text
      )}
    </span>
  );
}

const COLUMNS: Column<WatchDecision>[] = [
  {
    id: "subject",
    header: "Series",
    rowHeader: true,
    value: of => oneLine(of.subject),
    cell: of => <Subject of={of} />,
  },
  {
    id: "author",
    header: "Author",
    wrap: true,
    value: of => oneLine(of.author),
    cell: of => <span className={classes.long}>{oneLine(of.author)}</span>,
  },
  { id: "revision", header: "Revision", value: of => `v${of.revision}` },
  {
    id: "state",
    header: "State",
    value: of => humanize(of.state),
    cell: of => (
      <span title={DECISION_MEANING[of.state]}>
        <StateBadge state={of.state} />
      </span>
    ),
  },
  {
    id: "why",
    header: "Targets, or reason",
    wrap: true,
    value: of => whyText(of),
    cell: of => (
      <span className={classes.long}>
        {whyText(of)}
        {of.retry_at && (
          <span className="muted">
            ; decides again <RelativeTime at={of.retry_at} />
          </span>
        )}
      </span>
    ),
  },
  {
    id: "minutes",
    header: "Minutes",
    hint: "Device time that the quote of its submission predicts",
    numeric: true,
    value: of => of.minutes,
    text: of => (of.minutes === null ? "" : String(Math.round(of.minutes))),
  },
  submissionColumn,
  { id: "seen", header: "Seen", value: of => of.created_at, time: true },
];

/** What is measured, or the reason in words. */
export function whyText({
  detail,
  reason,
  targets,
}: Pick<WatchDecision, "detail" | "reason" | "targets">): string {
  return oneLine(detail) || (reason ? reasonText(reason) : targets.join(", "));
}

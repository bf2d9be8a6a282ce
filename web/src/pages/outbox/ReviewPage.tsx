import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { deliveriesQuery } from "@/api/queries";
import { sessionQuery } from "@/api/session";
import type { DeliveryView } from "@/api/types";
import { count } from "@/lib/numbers";
import { humanize } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FilterBar, SelectFilter } from "@/parts/FilterBar";
import { Page } from "@/parts/Page";
import { PagedTable } from "@/parts/PagedTable";
import { submissionColumn } from "@/parts/submissionColumn";
import { created, decidedBy, destination, finished, kind, reason, state, what } from "./columns";
import { STATES } from "./labels";
import { ANY, toMailFilters } from "./search";

const PAGE = 50;
/** Poll: there are no events for mails. */
const REFRESH_MS = 30_000;
const route = getRouteApi("/review");

export function ReviewPage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  if (!user?.scopes.includes("maintain")) {
    return (
      <Page title="Review">
        <EmptyState title="Only maintainers can review the lab's mails" />
      </Page>
    );
  }
  return <Mails />;
}

function Mails() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: "/review" });
  const { data: page, error } = useQuery({
    ...deliveriesQuery(toMailFilters(search, PAGE)),
    refetchInterval: REFRESH_MS,
  });
  const queue = search.state === "waiting_for_review";
  const total = page && count(page.total, "mail");
  return (
    <Page
      title="Review"
      lead={
        page ? (queue ? `${total} to approve, change or drop before the lab sends them.` : total) : "\u00a0"
      }
    >
      <FilterBar>
        <SelectFilter
          label="State"
          value={search.state === ANY ? "" : search.state}
          from={STATES}
          name={humanize}
          onValue={chosen => void navigate({ search: { state: chosen || ANY }, replace: true })}
        />
      </FilterBar>
      <PagedTable
        page={page}
        error={error}
        cursor={search.cursor}
        size={PAGE}
        caption="Mails"
        copyable={false}
        columns={queue ? QUEUE_COLUMNS : ALL_COLUMNS}
        rowKey={of => of.id}
        none={
          queue ? (
            <EmptyState
              title="No mail waits for review"
              action={
                <Link to="/review" search={{ state: ANY }}>
                  Mails that were sent or dropped
                </Link>
              }
            >
              When a series that came by mail has its verdict, the answer to its thread waits here.
            </EmptyState>
          ) : (
            <EmptyState title="No mail is in this state" action={<Link to="/review">Mails to review</Link>} />
          )
        }
      />
    </Page>
  );
}

const SUBJECT = { ...what, header: "Subject" };
const QUEUE_COLUMNS: Column<DeliveryView>[] = [
  SUBJECT,
  destination,
  kind,
  submissionColumn,
  { ...created, header: "Waiting since" },
];
const ALL_COLUMNS: Column<DeliveryView>[] = [
  SUBJECT,
  destination,
  submissionColumn,
  state,
  decidedBy,
  created,
  finished,
  reason,
];

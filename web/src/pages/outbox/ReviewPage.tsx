import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { usePaged } from "@/api/paged";
import { deliveriesQuery } from "@/api/queries";
import { sessionQuery } from "@/api/session";
import { count } from "@/lib/numbers";
import { humanize } from "@/lib/words";
import { DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FilterBar, SelectFilter } from "@/parts/FilterBar";
import { Page } from "@/parts/Page";
import { Pager } from "@/parts/Pager";
import { Skeleton } from "@/parts/Skeleton";
import { created, decidedBy, destination, finished, kind, reason, state, submission, what } from "./columns";
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
  const paged = usePaged(search.cursor, page, PAGE);
  if (error && !page) throw error;
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
      {!page ? (
        <Skeleton lines={8} height="1.8rem" />
      ) : page.items.length === 0 ? (
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
      ) : (
        <DataTable
          caption="Mails"
          captionHidden
          copyable={false}
          columns={queue ? QUEUE_COLUMNS : ALL_COLUMNS}
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

const SUBJECT = { ...what, header: "Subject" };
const QUEUE_COLUMNS = [SUBJECT, destination, kind, submission, { ...created, header: "Waiting since" }];
const ALL_COLUMNS = [SUBJECT, destination, submission, state, decidedBy, created, finished, reason];

import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { deliveriesQuery } from "@/api/outboxQueries";
import { sessionQuery } from "@/api/session";
import type { DeliveryView } from "@/api/types";
import { count } from "@/lib/numbers";
import { humanize } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FilterBar, SelectFilter, TextFilter } from "@/parts/FilterBar";
import { Page } from "@/parts/Page";
import { PagedTable } from "@/parts/PagedTable";
import { submissionColumn } from "@/parts/submissionColumn";
import { attempts, created, decidedBy, destination, kind, next, reason, state, what } from "./columns";
import { KINDS, STATES } from "./labels";
import { type DeliverySearch, toDeliveryFilters, typedNumber } from "./search";

const PAGE = 50;
/** Poll: there are no events for deliveries. */
const REFRESH_MS = 15_000;
const COLUMNS: Column<DeliveryView>[] = [
  what,
  kind,
  destination,
  submissionColumn,
  state,
  attempts,
  next,
  created,
  reason,
];
const MAIL_COLUMNS = [...COLUMNS, decidedBy];
const route = getRouteApi("/deliveries");

export function DeliveriesPage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  if (!user) {
    return (
      <Page title="Deliveries">
        <EmptyState
          title="You are not signed in"
          action={
            <Link to="/sign-in" search={{ next: "/deliveries" }}>
              Sign in
            </Link>
          }
        />
      </Page>
    );
  }
  return <Deliveries scope={scopeText(user.scopes)} />;
}

/** What the server lists for a user. */
function scopeText(scopes: readonly string[]): string {
  if (scopes.includes("admin")) return "everything that the lab sends to others";
  return scopes.includes("maintain")
    ? "all mails, and what is sent to your webhooks"
    : "what is sent to your webhooks";
}

function Deliveries({ scope }: { scope: string }) {
  const search = route.useSearch();
  const navigate = useNavigate({ from: "/deliveries" });
  const { data: page } = useQuery({
    ...deliveriesQuery(toDeliveryFilters(search, PAGE)),
    refetchInterval: REFRESH_MS,
  });
  const set = (change: Partial<DeliverySearch>) =>
    void navigate({ search: before => ({ ...before, ...change, cursor: "" }), replace: true });
  const narrowed =
    [search.kind, search.state].some(Boolean) || search.webhook !== null || search.submission !== null;
  return (
    <Page
      title="Deliveries"
      lead={page ? `${count(page.total, "delivery", "deliveries")}: ${scope}.` : "\u00a0"}
      actions={<Link to="/webhooks">Webhooks</Link>}
    >
      <FilterBar>
        <SelectFilter
          label="Kind"
          value={search.kind}
          from={KINDS}
          name={humanize}
          onValue={chosen => set({ kind: chosen })}
        />
        <SelectFilter
          label="State"
          value={search.state}
          from={STATES}
          name={humanize}
          onValue={chosen => set({ state: chosen })}
        />
        <TextFilter
          label="Submission"
          hint="number"
          value={search.submission === null ? "" : String(search.submission)}
          onValue={typed => set({ submission: typedNumber(typed) })}
        />
        <TextFilter
          label="Webhook"
          hint="number"
          value={search.webhook === null ? "" : String(search.webhook)}
          onValue={typed => set({ webhook: typedNumber(typed) })}
        />
      </FilterBar>
      <PagedTable
        page={page}
        cursor={search.cursor}
        size={PAGE}
        lines={12}
        caption="Deliveries"
        columns={search.kind === "mail" ? MAIL_COLUMNS : COLUMNS}
        rowKey={of => of.id}
        mark={of => of.state}
        unmatched={narrowed ? "No delivery matches" : ""}
        none={
          <EmptyState title="Nothing was sent yet" action={<Link to="/webhooks">Add a webhook</Link>}>
            Webhooks and mails about results are listed here with every attempt.
          </EmptyState>
        }
      />
    </Page>
  );
}

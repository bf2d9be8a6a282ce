import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { auditQuery } from "@/api/queries";
import { sessionQuery } from "@/api/session";
import type { AuditEntry } from "@/api/types";
import { count } from "@/lib/numbers";
import { absolute } from "@/lib/time";
import type { Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { DayFilter, FilterBar, SelectFilter, TextFilter } from "@/parts/FilterBar";
import { Page } from "@/parts/Page";
import { PagedTable } from "@/parts/PagedTable";
import classes from "./AuditPage.module.css";
import { ACTIONS, type AuditSearch, detailText, OUTCOMES, toAuditFilters } from "./audit";

const PAGE = 100;
const route = getRouteApi("/admin/audit");

export function AuditPage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  if (!user?.scopes.includes("admin")) {
    return (
      <Page title="Audit log">
        <EmptyState title="Only administrators can read the audit log" />
      </Page>
    );
  }
  return <AuditLog />;
}

function AuditLog() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: "/admin/audit" });
  const { data: page } = useQuery(auditQuery(toAuditFilters(search, PAGE)));
  const set = (change: Partial<AuditSearch>) =>
    void navigate({ search: before => ({ ...before, ...change, cursor: "" }), replace: true });
  return (
    <Page title="Audit log" lead={page ? count(page.total, "entry", "entries") : "\u00a0"}>
      <FilterBar>
        <TextFilter label="Actor" value={search.actor} onValue={actor => set({ actor })} />
        <SelectFilter
          label="Action"
          value={search.action}
          from={ACTIONS}
          onValue={action => set({ action })}
        />
        <TextFilter
          label="Resource"
          hint="device or device/tiny-1"
          value={search.resource}
          onValue={resource => set({ resource })}
        />
        <SelectFilter
          label="Outcome"
          value={search.outcome}
          from={OUTCOMES}
          onValue={outcome => set({ outcome })}
        />
        <TextFilter label="Address" value={search.address} onValue={address => set({ address })} />
        <DayFilter label="From" value={search.since} onValue={since => set({ since })} />
        <DayFilter label="To" value={search.until} onValue={until => set({ until })} />
      </FilterBar>
      <PagedTable
        page={page}
        cursor={search.cursor}
        size={PAGE}
        caption="Audit log"
        columns={COLUMNS}
        rowKey={of => of.id}
        mark={of => of.outcome}
        empty="No entry matches."
      />
    </Page>
  );
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  {
    id: "at",
    header: "Time",
    value: of => of.at,
    cell: of => (
      <time className="nowrap" dateTime={of.at}>
        {absolute(new Date(of.at))}
      </time>
    ),
  },
  {
    id: "actor",
    header: "Actor",
    value: of => of.actor || "unknown",
    cell: of => (of.actor === "" ? <span className="muted">unknown</span> : of.actor),
    rowHeader: true,
  },
  {
    id: "token",
    header: "Token",
    hint: "API token of the request; a browser session has none",
    value: of => of.token_name,
    cell: of =>
      of.token_name === null ? null : (
        <span className={classes.name} title={of.token_name}>
          {of.token_name}
        </span>
      ),
  },
  {
    id: "address",
    header: "Address",
    value: of => of.address,
  },
  { id: "action", header: "Action", value: of => of.action },
  {
    id: "resource",
    header: "Resource",
    value: of => of.resource,
    cell: of => (
      <span className={classes.name} title={of.resource}>
        <Resource of={of.resource} />
      </span>
    ),
  },
  {
    id: "outcome",
    header: "Outcome",
    value: of => of.outcome,
    cell: of => (of.outcome === "refused" ? <strong className={classes.refused}>refused</strong> : "done"),
  },
  {
    id: "detail",
    header: "Detail",
    value: of => detailText(of.detail),
    cell: of => <Detail text={detailText(of.detail)} />,
    wrap: true,
  },
];

const FOLDED_LENGTH = 200;

/** Detail of an entry; a long one, such as all settings, is folded to its beginning. */
function Detail({ text }: { text: string }) {
  if (text.length <= FOLDED_LENGTH) return <span className={classes.detail}>{text}</span>;
  return (
    <details className={classes.detail}>
      <summary>{text.slice(0, FOLDED_LENGTH)}…</summary>
      {text}
    </details>
  );
}

/** Name of a resource, as a link if it has a page. */
function Resource({ of }: { of: string }) {
  const [type, id = ""] = of.split("/");
  if (type === "submission" && /^\d+$/.test(id)) {
    return (
      <Link to="/submissions/$id" params={{ id: Number(id) }}>
        {of}
      </Link>
    );
  }
  if (type === "device" && id) {
    return (
      <Link to="/lab/$name" params={{ name: id }}>
        {of}
      </Link>
    );
  }
  return of === "" ? <span className="muted">–</span> : of;
}

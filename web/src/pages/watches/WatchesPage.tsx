import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import type { WatchView } from "@/api/types";
import { watchesQuery } from "@/api/watchQueries";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { headCounts } from "./labels";
import { FormLink, Obstacle } from "./parts";
import { WatchForm } from "./WatchForm";
import { budgetText, measuresText, obstacle, takesText } from "./watch";
import classes from "./watches.module.css";

/** Poll: there are no events for watches. */
const REFRESH_MS = 15_000;
/** Files, words, authors and branches that the table names; the watch's page has all. */
const LISTED = 4;
const route = getRouteApi("/watches");

export function WatchesPage() {
  const { data: watches } = useSuspenseQuery({ ...watchesQuery, refetchInterval: REFRESH_MS });
  const { form } = route.useSearch();
  const { user } = useSuspenseQuery(sessionQuery).data;
  const adds = user?.scopes.includes("admin") ?? false;
  if (form && adds) {
    return (
      <Page
        title="Add a watch"
        lead="What the lab measures without anybody submitting it."
        trail={<Link to="/watches">Watches</Link>}
      >
        <WatchForm owner={user?.name ?? ""} />
      </Page>
    );
  }
  const link = adds && (
    <FormLink to="/watches" filled>
      Add a watch
    </FormLink>
  );
  const enabled = watches.filter(each => each.enabled_at !== null).length;
  return (
    <Page
      title="Watches"
      lead={
        <>
          Mailing lists and trees of which the lab measures what is new.{" "}
          {watches.length > 0 && `${count(watches.length, "watch", "watches")}, ${enabled} enabled. `}
          <a href="/docs/intake/#watches">How watches decide</a>
        </>
      }
      actions={link}
    >
      {watches.length === 0 ? (
        <EmptyState title="No watches">
          An administrator adds one here, with <code>wqlab watches add FILE</code>, or as a file in{" "}
          <code>intake/watches/</code> of the data folder.
        </EmptyState>
      ) : (
        <DataTable
          caption="Watches"
          captionHidden
          columns={COLUMNS}
          rows={watches}
          rowKey={of => of.spec.name}
          narrow="stack"
        />
      )}
    </Page>
  );
}

const COLUMNS: Column<WatchView>[] = [
  {
    id: "name",
    header: "Watch",
    rowHeader: true,
    value: of => of.spec.name,
    cell: of => (
      <>
        <Link to="/watches/$name" params={{ name: of.spec.name }} className={classes.long}>
          {of.spec.name}
        </Link>
        {of.spec.summary && <div className={classes.summary}>{oneLine(of.spec.summary)}</div>}
      </>
    ),
  },
  {
    id: "state",
    header: "State",
    value: of => (of.enabled_at === null ? "off" : "on"),
    cell: of => <StateBadge state={of.enabled_at === null ? "off" : "on"} />,
  },
  {
    id: "obstacle",
    header: "Stands still",
    hint: "Why it submits nothing at the moment",
    wrap: true,
    value: of => obstacle(of, new Date())?.text,
    cell: of => <Standstill of={of} />,
  },
  {
    id: "of",
    header: "Looks at",
    value: of => (of.spec.kind === "list" ? `list ${of.spec.archive}` : `tree ${of.spec.tree}`),
    cell: of => (
      <>
        <span className="muted">{of.spec.kind}</span>{" "}
        {of.spec.kind === "list" ? of.spec.archive : of.spec.tree}
        {of.enabled_at !== null && (
          <span className={classes.second}>
            {of.spec.kind === "list" ? "read" : "looked"}{" "}
            <RelativeTime at={of.mailing_list?.read_at ?? of.repository?.looked_at} absent="not yet" />
          </span>
        )}
      </>
    ),
  },
  {
    id: "takes",
    header: "Takes",
    hint: "Files, words in subjects and authors, each kind of which has to match; or branches and tags",
    wrap: true,
    value: of => takesText(of.spec),
    cell: of => (
      <span className={classes.long}>
        {takesText(of.spec, LISTED)}
        {of.repository && <span className={classes.second}>{headCounts(of.repository.heads)}</span>}
      </span>
    ),
  },
  {
    id: "measures",
    header: "Measures",
    wrap: true,
    value: of => measuresText(of.spec),
    cell: of => <span className={classes.long}>{measuresText(of.spec)}</span>,
  },
  {
    id: "budget",
    header: "Used in 24 h",
    hint: "Device time that its submissions of the last 24 hours were quoted, of its budget",
    numeric: true,
    value: of => of.minutes_used,
    text: budgetText,
    cell: budgetText,
  },
];

function Standstill({ of }: { of: WatchView }) {
  const found = obstacle(of, useNow(30_000));
  return found && <Obstacle of={found} />;
}

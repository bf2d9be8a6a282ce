import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { watchedTreesQuery } from "@/api/intakeQueries";
import { sessionQuery } from "@/api/session";
import type { WatchedTreeView } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./intake.module.css";
import { headCounts } from "./labels";
import { FormLink, Obstacle, treeObstacle } from "./Watched";
import { WatchedTreeForm } from "./WatchedTreeForm";

/** Poll: there are no events for watched trees. */
const REFRESH_MS = 15_000;
const route = getRouteApi("/watched-trees");

export function WatchedTreesPage() {
  const { data: trees } = useSuspenseQuery({ ...watchedTreesQuery, refetchInterval: REFRESH_MS });
  const { form } = route.useSearch();
  const { user } = useSuspenseQuery(sessionQuery).data;
  const adds = user?.scopes.includes("maintain") ?? false;
  if (form && adds) {
    return (
      <Page
        title="Watch a tree"
        lead="Branches and tags whose new heads are measured, each against the last one that was."
        trail={<Link to="/watched-trees">Watched trees</Link>}
      >
        <WatchedTreeForm owner={user?.name ?? ""} />
      </Page>
    );
  }
  const on = trees.filter(each => each.enabled).length;
  return (
    <Page
      title="Watched trees"
      lead={
        <>
          Branches and tags whose new heads are measured.{" "}
          {trees.length > 0 && `${count(trees.length, "tree")}, ${on} enabled. `}
          <a href="/docs/intake/#watched-trees">What becomes of a head</a>
        </>
      }
      actions={
        <>
          <Link to="/rules">Watched lists</Link>
          {adds && (
            <FormLink to="/watched-trees" filled>
              Watch a tree
            </FormLink>
          )}
        </>
      }
    >
      {trees.length === 0 ? (
        <EmptyState
          title="No watched trees"
          action={
            adds && (
              <FormLink to="/watched-trees" filled>
                Watch a tree
              </FormLink>
            )
          }
        >
          A regression that nobody submitted is seen in them, with the two heads between which it came.
        </EmptyState>
      ) : (
        <DataTable
          caption="Watched trees"
          captionHidden
          columns={COLUMNS}
          rows={trees}
          rowKey={of => of.spec.name}
          narrow="stack"
        />
      )}
    </Page>
  );
}

const COLUMNS: Column<WatchedTreeView>[] = [
  {
    id: "name",
    header: "Name",
    rowHeader: true,
    value: of => of.spec.name,
    cell: of => (
      <>
        <Link to="/watched-trees/$name" params={{ name: of.spec.name }} className={classes.long}>
          {of.spec.name}
        </Link>
        {of.spec.summary && <div className={classes.summary}>{oneLine(of.spec.summary)}</div>}
      </>
    ),
  },
  {
    id: "state",
    header: "State",
    value: of => (of.enabled ? "on" : "off"),
    cell: of => <StateBadge state={of.enabled ? "on" : "off"} />,
  },
  {
    id: "obstacle",
    header: "Stands still",
    hint: "Why heads are not found or not submitted",
    wrap: true,
    value: of => treeObstacle(of)?.text,
    cell: of => <Standstill of={of} />,
  },
  { id: "tree", header: "Tree", value: of => of.spec.tree },
  {
    id: "watches",
    header: "Watches",
    hint: "Branches, and patterns of tags",
    wrap: true,
    value: of => oneLine([...(of.spec.branches ?? []), ...(of.spec.tags ?? [])].join(", ")),
    cell: of => (
      <span className={classes.long}>
        {oneLine([...(of.spec.branches ?? []), ...(of.spec.tags ?? [])].join(", "))}
      </span>
    ),
  },
  {
    id: "measures",
    header: "Measures",
    wrap: true,
    value: of => oneLine(of.spec.targets.join(", ")),
    cell: of => <span className={classes.long}>{oneLine(of.spec.targets.join(", "))}</span>,
  },
  { id: "batch", header: "Batch", hint: "What happens to heads that wait", value: of => of.spec.batch },
  { id: "heads", header: "Heads", wrap: true, value: of => headCounts(of.heads) },
  {
    id: "looked",
    header: "Looked",
    value: of => of.looked_at,
    cell: of => <RelativeTime at={of.looked_at} />,
  },
];

function Standstill({ of }: { of: WatchedTreeView }) {
  const found = treeObstacle(of);
  return found && <Obstacle of={found} />;
}

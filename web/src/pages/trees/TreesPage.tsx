import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { treesQuery } from "@/api/queries";
import type { TreeView } from "@/api/types";
import { oneLine } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { EmptyState } from "@/parts/EmptyState";
import { FailureCard } from "@/parts/FailureCard";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./TreesPage.module.css";

export function TreesPage() {
  const { data: trees } = useSuspenseQuery(treesQuery);
  return (
    <Page
      title="Trees"
      actions={<Link to="/watches">Watches</Link>}
      lead="Kernel trees that a series can be submitted for. The baseline of a branch is its merge base with the tree's branch. An mbox is applied to the base commit it names, or to the tree's head."
    >
      {trees.length === 0 ? (
        <EmptyState title="No trees">
          To add a tree, create an entry in <code>kernels/trees.yaml</code>.
        </EmptyState>
      ) : (
        trees.map(view => <Tree key={view.tree.name} view={view} />)
      )}
    </Page>
  );
}

function Tree({ view }: { view: TreeView }) {
  const { tree, failure } = view;
  return (
    <Section
      id={tree.name}
      title={
        <>
          {tree.name}
          {view.default && <span className={classes.default}>default</span>}
        </>
      }
      lead={oneLine(tree.summary)}
      actions={
        <>
          <Link to="/submit" search={{ tree: tree.name }}>
            Submit for this tree<span className="hidden-visually">: {tree.name}</span>
          </Link>
          <Link to="/submissions" search={{ tree: tree.name }}>
            Submissions<span className="hidden-visually">: {tree.name}</span>
          </Link>
        </>
      }
    >
      <dl className={`facts ${classes.facts}`}>
        {tree.debian_source ? (
          <>
            <dt>Source</dt>
            <dd>
              Debian source package <code>{tree.debian_source}</code>
              {tree.debian_suite && <> of {tree.debian_suite}</>}
            </dd>
          </>
        ) : (
          <>
            <dt>Source</dt>
            <dd className={classes.long}>
              {/^https?:\/\//.test(tree.url ?? "") ? (
                <a href={tree.url ?? ""} rel="noreferrer">
                  {tree.url}
                </a>
              ) : (
                <code>{tree.url}</code>
              )}
            </dd>
            <dt>Branch</dt>
            <dd>
              <code>{tree.branch}</code>
            </dd>
          </>
        )}
        <dt>Head</dt>
        <dd className={classes.head}>
          {view.base_commit ? (
            <>
              <code className={classes.long}>{view.base_commit}</code>
              <CopyButton text={view.base_commit} name={`Copy the head commit of ${tree.name}`} />
            </>
          ) : (
            <span className="muted">not fetched yet; the first submission for this tree fetches it</span>
          )}
        </dd>
        {view.base_commit && (
          <>
            <dt>Release</dt>
            <dd>{view.release ? oneLine(view.release) : <span className="muted">unknown</span>}</dd>
            <dt>Fetched</dt>
            <dd>
              <RelativeTime at={view.resolved_at} absent="unknown" />
            </dd>
          </>
        )}
      </dl>
      {failure && <FailureCard failure={failure} what="last fetch" />}
    </Section>
  );
}

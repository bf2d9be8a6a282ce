import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, dataOf } from "@/api/client";
import { forgeQuery, forgesQuery } from "@/api/outboxQueries";
import { sessionQuery } from "@/api/session";
import type { ForgeDetail, ForgeHeadView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button } from "@/kit";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Facts } from "@/parts/Facts";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./ForgesPage.module.css";
import { changeText, changeUrl, countsText, KIND_WORDS, spendersText } from "./words";

export function ForgesPage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  if (!user?.scopes.includes("maintain")) {
    return (
      <Page title="Forges">
        <EmptyState title="Only maintainers see the forges" />
      </Page>
    );
  }
  return <Forges />;
}

function Forges() {
  const { data: forges } = useSuspenseQuery(forgesQuery);
  return (
    <Page
      title="Forges"
      lead={
        <>
          Repositories whose pull requests and pushes are measured.{" "}
          <a href="/docs/forges/">How to add one, and what to do when something does not work</a>
        </>
      }
      actions={<Link to="/deliveries">Deliveries</Link>}
    >
      {forges.length === 0 ? (
        <EmptyState title="No forges">
          The operator lists them in <code>intake/forges.yaml</code>.
        </EmptyState>
      ) : (
        forges.map(({ name }) => <Forge key={name} name={name} />)
      )}
    </Page>
  );
}

function Forge({ name }: { name: string }) {
  const { data: forge } = useQuery(forgeQuery(name));
  const client = useQueryClient();
  const poll = useMutation({
    mutationFn: () => dataOf(api.POST("/api/v1/forges/{name}/poll", { params: { path: { name } } })),
    onSuccess: () => toast({ text: `Forge ${name} is polled; what is found is here in some seconds.` }),
    onError: problem => toast({ tone: "bad", text: problem.message }),
    onSettled: () => client.invalidateQueries({ queryKey: ["forges"] }),
  });
  return (
    <Section
      id={name}
      title={name}
      lead={forge && countsText(forge.heads ?? {})}
      actions={
        <Button
          size="compact-xs"
          variant="default"
          aria-label={`Poll now: ${name}`}
          loading={poll.isPending}
          onClick={() => poll.mutate()}
        >
          Poll now
        </Button>
      }
    >
      {forge ? (
        <>
          <ForgeFacts of={forge} />
          <Heads of={forge} heads={forge.waiting ?? []} caption="Not finished" />
          <Heads of={forge} heads={forge.not_measured ?? []} caption="Not measured" />
        </>
      ) : (
        <Skeleton lines={6} height="1.4rem" />
      )}
    </Section>
  );
}

function ForgeFacts({ of }: { of: ForgeDetail }) {
  const { last_status: status, last_error: error } = of;
  return (
    <Facts
      of={{
        Repository: (
          <>
            <a href={of.url} rel="noreferrer">
              {of.repository}
            </a>{" "}
            on {KIND_WORDS[of.kind]}, tree {of.tree}
          </>
        ),
        "Device time": (
          <>
            {spendersText(of)}; quota of {of.owner}
          </>
        ),
        "Last event": (
          <>
            <RelativeTime at={of.last_event_at} />
            {of.last_event_at && `: ${oneLine(of.last_event)}, ${oneLine(of.last_event_answer)}`}
          </>
        ),
        "Last poll": (
          <>
            <RelativeTime at={of.polled_at} />
            {of.next_poll_at ? (
              <>
                , next <RelativeTime at={of.next_poll_at} />
              </>
            ) : (
              ", polls are switched off"
            )}
            {of.missed > 0 && (
              <>
                ; {count(of.missed, "change")} found by polls, the last <RelativeTime at={of.missed_at} />
              </>
            )}
            {!of.complete &&
              "; it has more pull requests or branches than a poll reads: only events tell of new ones"}
          </>
        ),
        "Last status": (
          <>
            {status ? (
              <>
                <RelativeTime at={status.at} />: {status.state} at <code>{status.commit.slice(0, 12)}</code>,{" "}
                {oneLine(status.description)} <StateBadge state={status.delivery} />{" "}
                <Link to="/deliveries/$id" params={{ id: status.delivery_id }}>
                  Delivery {status.delivery_id}
                </Link>
              </>
            ) : (
              <span className="muted">none was sent</span>
            )}
          </>
        ),
        "Last error": (
          <>
            {error ? (
              <>
                <RelativeTime at={error.at} />, {oneLine(error.what)}:{" "}
                <span className={classes.problem}>{oneLine(error.problem)}</span>
              </>
            ) : (
              <span className="muted">none</span>
            )}
          </>
        ),
      }}
    />
  );
}

function Heads({
  of,
  heads,
  caption,
}: {
  of: ForgeDetail;
  heads: readonly ForgeHeadView[];
  caption: string;
}) {
  if (heads.length === 0) return null;
  const columns: Column<ForgeHeadView>[] = [
    {
      id: "change",
      header: "Change",
      rowHeader: true,
      value: head => changeText(head),
      cell: head => (
        <a className={classes.long} href={changeUrl(of, head)} rel="noreferrer">
          {oneLine(changeText(head))}
        </a>
      ),
    },
    {
      id: "commit",
      header: "Commit",
      value: head => head.commit,
      cell: head => <code>{head.commit.slice(0, 12)}</code>,
    },
    {
      id: "author",
      header: "Author",
      value: head => head.author,
      cell: head => (
        <>
          {oneLine(head.author) || <span className="muted">unknown</span>}
          {head.from_fork && " (fork)"}
        </>
      ),
    },
    {
      id: "state",
      header: "State",
      value: head => head.state,
      cell: head => <StateBadge state={head.state} />,
    },
    {
      id: "reason",
      header: "Reason",
      wrap: true,
      value: head => head.reason,
      cell: head =>
        head.submission_id === null ? (
          <span className={classes.long}>{oneLine(head.reason)}</span>
        ) : (
          <Link to="/submissions/$id" params={{ id: head.submission_id }}>
            Submission {head.submission_id}
          </Link>
        ),
    },
    { id: "seen", header: "Seen", value: head => head.seen_at, time: true },
  ];
  return (
    <DataTable
      caption={`${caption}: ${count(heads.length, "head")}`}
      columns={columns}
      rows={heads}
      rowKey={head => head.id}
      narrow="stack"
    />
  );
}

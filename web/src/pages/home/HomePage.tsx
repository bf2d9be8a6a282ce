import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { submissionsQuery } from "@/api/queries";
import type { SubmissionSummary } from "@/api/types";
import { oneLine } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { VerdictCounts } from "@/parts/VerdictBadge";
import classes from "./HomePage.module.css";

const LAST = 8;

export function HomePage() {
  const running = useQuery({
    ...submissionsQuery({ state: "running", limit: LAST }),
    refetchInterval: 15_000,
  });
  const finished = useQuery(submissionsQuery({ state: "finished", limit: LAST }));
  return (
    <Page
      title="wqlab"
      heading="Is your workqueue or scheduler patch better, and where?"
      lead={
        <>
          Send a series. The lab builds baseline and candidate, boots both in turns on the same machines, and
          answers per CPU topology: <strong>better, worse, the same, or can't tell yet, and why.</strong>
        </>
      }
    >
      <div className="row">
        <Link to="/submit" className={classes.call}>
          Submit a series
        </Link>
        <Link to="/plans">What is measured, and how</Link>
      </div>
      <Section id="running" title="Running now">
        <Listed of={running.data?.items} empty="Nothing runs now." />
      </Section>
      <Section id="last" title="Last verdicts">
        <Listed of={finished.data?.items} empty="No verdict yet." />
      </Section>
    </Page>
  );
}

function Listed({ of, empty }: { of: readonly SubmissionSummary[] | undefined; empty: string }) {
  if (!of) return <Skeleton lines={3} height="1.5rem" />;
  if (of.length === 0) return <EmptyState title={empty} />;
  return (
    <ul className={classes.list}>
      {of.map(each => (
        <li key={each.id} className={classes.entry}>
          <Link to="/submissions/$id" params={{ id: each.id }} className={classes.title}>
            {oneLine(each.title) || `Submission ${each.id}`}
          </Link>
          <span className={classes.verdicts}>
            {each.state === "finished" && each.outcome === "passed" ? (
              <VerdictCounts verdicts={each.verdicts} />
            ) : (
              <StateBadge state={each.state} outcome={each.outcome} />
            )}
          </span>
          <span className="muted">
            {each.owner}, <RelativeTime at={each.finished_at ?? each.created_at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

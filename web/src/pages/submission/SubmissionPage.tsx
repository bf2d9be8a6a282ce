import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { submissionQuery } from "@/api/queries";
import { oneLine } from "@/lib/words";
import { FailureCard } from "@/parts/FailureCard";
import { Page } from "@/parts/Page";
import { Progress } from "@/parts/Progress";
import { StateBadge } from "@/parts/StateBadge";
import { VerdictCounts } from "@/parts/VerdictBadge";

const route = getRouteApi("/submissions/$id");

export function SubmissionPage() {
  const { id } = route.useParams();
  const { data: submission } = useSuspenseQuery(submissionQuery(id));
  const { eta } = submission;
  return (
    <Page
      title={`${id}: ${oneLine(submission.title)}`}
      trail={<Link to="/submissions">Submissions</Link>}
      lead={<StateBadge state={submission.state} outcome={submission.outcome} />}
    >
      <Progress done={eta.done_boots} total={eta.total_boots} noun="boots" finishAt={eta.finish_at}>
        {eta.what}
      </Progress>
      <VerdictCounts verdicts={submission.verdicts} />
      {submission.failure && <FailureCard failure={submission.failure} />}
      <p>
        <Link to="/submissions/$id/report" params={{ id }}>
          Report
        </Link>
      </p>
    </Page>
  );
}

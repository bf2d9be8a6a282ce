/**
 * The report of a submission: the verdict in words, then ever more of what it rests on. Selecting and filtering change the
 * address and with it this component; what does not depend on the address is `memo`, or a large report would be slow.
 */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useEvents } from "@/api/events";
import { reportQuery } from "@/api/queries";
import type { Report } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { ToldFailure } from "@/parts/FailureCard";
import { Page } from "@/parts/Page";
import { Progress } from "@/parts/Progress";
import { RelativeTime } from "@/parts/RelativeTime";
import { Attempts } from "./Attempts";
import { CellSection } from "./CellSection";
import { Kernels } from "./Kernels";
import { MailText } from "./MailText";
import { Matrices } from "./Matrices";
import { Method } from "./Method";
import { cellsOf, firstCell } from "./model";
import { Numbers } from "./Numbers";
import { OnThisPage } from "./OnThisPage";
import { Share } from "./Share";
import { TargetSection } from "./TargetSection";
import { Verdicts } from "./Verdicts";

const route = getRouteApi("/submissions/$id/report");

export function ReportPage() {
  const { id } = route.useParams();
  const search = route.useSearch();
  const { data: report } = useSuspenseQuery(reportQuery(id));
  const { submission } = report;
  const finished = submission.state === "finished";
  useEvents(id, { enabled: !finished });

  const cells = useMemo(() => cellsOf(report), [report]);
  const selected = useMemo(
    () => cells.find(cell => cell.key === search.cell) ?? firstCell(cells),
    [cells, search.cell],
  );
  const title = oneLine(submission.title) || `submission ${id}`;
  return (
    <Page
      title={`Report ${id}: ${title}`}
      heading={title}
      trail={
        <>
          <Link to="/submissions">Submissions</Link>
          <span aria-hidden="true">/</span>
          <Link to="/submissions/$id" params={{ id }}>
            {id}
          </Link>
        </>
      }
      lead={<Lead report={report} />}
      actions={<Share report={report} />}
    >
      {!finished && (
        <Progress
          done={submission.eta.done_boots}
          total={submission.eta.total_boots}
          noun="boots"
          finishAt={submission.eta.finish_at}
        >
          Not finished: this is what there is so far. {submission.eta.what}
        </Progress>
      )}
      <Verdicts report={report} />
      {submission.failure && <ToldFailure failure={submission.failure} what="the submission" />}
      <OnThisPage report={report} />
      {selected ? (
        <>
          <Matrices report={report} cells={cells} selected={selected} search={search} />
          <CellSection cells={cells} selected={selected} />
          <Numbers cells={cells} search={search} />
        </>
      ) : (
        <EmptyState title="Nothing was compared">
          {finished
            ? "No run of this submission brought figures. What went wrong is said on this page."
            : "There are figures as soon as a run has whole blocks of boots."}
        </EmptyState>
      )}
      {report.targets.map(target => (
        <TargetSection key={target.run_id} target={target} cells={cells} told={submission.failure} />
      ))}
      <Kernels report={report} />
      <Attempts report={report} />
      <MailText id={id} finished={finished} />
      <Method report={report} />
    </Page>
  );
}

function Lead({ report: { submission, generated_at } }: { report: Report }) {
  const { apply } = submission;
  const what =
    submission.request.series === null
      ? `settings of ${submission.tree}`
      : `${apply.patches.length > 0 ? count(apply.patches.length, "patch", "patches") : "a series"} on ${submission.tree}`;
  return (
    <>
      {submission.version !== null && `v${submission.version}, `}
      {what}
      {apply.release && ` (${apply.release})`}
      {submission.author && `, by ${oneLine(submission.author)}`}
      {", "}
      {submission.finished_at ? "finished " : "as of "}
      <RelativeTime at={submission.finished_at ?? generated_at} />
    </>
  );
}

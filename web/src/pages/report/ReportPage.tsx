/**
 * The report of a submission: the verdict, followed by increasing detail. Selections and filters are in the URL, so
 * they render this component again; parts that do not depend on the URL are memoized to keep large reports fast.
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
import { MainFailure } from "@/parts/FailureCard";
import { Page } from "@/parts/Page";
import { Progress } from "@/parts/Progress";
import { RelativeTime } from "@/parts/RelativeTime";
import { Attempts } from "./Attempts";
import { Boots } from "./Boots";
import { CellSection } from "./CellSection";
import { appliesMethod, mainFailure } from "./failures";
import { Kernels } from "./Kernels";
import { MailText } from "./MailText";
import { Matrices } from "./Matrices";
import { Method } from "./Method";
import { cellsOf, firstCell } from "./model";
import { Numbers } from "./Numbers";
import { OnThisPage } from "./OnThisPage";
import classes from "./ReportPage.module.css";
import { Share } from "./Share";
import { Sweep } from "./Sweep";
import { TargetSection } from "./TargetSection";
import { Trust } from "./Trust";
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
  const failure = mainFailure(report);
  const deciding = useMemo(() => firstCell(cells), [cells]);
  const selected = useMemo(
    () => cells.find(cell => cell.key === search.cell) ?? deciding,
    [cells, search.cell, deciding],
  );
  const title = oneLine(submission.title) || `Submission ${id}`;
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
          Not finished; results are preliminary. {submission.eta.what}
        </Progress>
      )}
      <div className={classes.hero}>
        <Verdicts report={report} cells={cells} />
        {deciding && <Boots cells={cells} of={deciding} />}
      </div>
      <Trust report={report} />
      {failure && <MainFailure failure={failure} where={report.failed_at} />}
      <Sweep report={report} />
      {selected && <Matrices report={report} cells={cells} selected={selected} search={search} />}
      <MailText id={id} finished={finished} />
      <OnThisPage report={report} />
      {selected ? (
        <>
          <CellSection report={report} cells={cells} selected={selected} />
          <Numbers cells={cells} search={search} />
        </>
      ) : (
        <EmptyState title="No comparisons">{whyNoComparisons(report, finished)}</EmptyState>
      )}
      {report.targets.map(target => (
        <TargetSection key={target.run_id} target={target} cells={cells} report={report} />
      ))}
      <Kernels report={report} />
      <Attempts report={report} />
      {appliesMethod(report) && <Method report={report} />}
    </Page>
  );
}

function whyNoComparisons(report: Report, finished: boolean): string {
  if (!finished) return "Figures appear once a run has completed blocks.";
  if (report.targets.length > 0 && report.targets.every(target => target.byte_identical))
    return "The kernels are byte-identical: there is nothing to measure.";
  return "No run of this submission produced figures. See the failures on this page.";
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

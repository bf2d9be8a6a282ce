/**
 * The report of a submission: the verdict, followed by increasing detail. Selections and filters are in the URL, so
 * they render this component again; parts that do not depend on the URL are memoized to keep large reports fast.
 */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { useEvents } from "@/api/events";
import { reportPageQuery } from "@/api/reportPage";
import type { Report } from "@/api/types";
import { oneLine } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { Progress } from "@/parts/Progress";
import { Attempts } from "./Attempts";
import { CellSection } from "./CellSection";
import { Changed } from "./Changed";
import { FirstScreen } from "./FirstScreen";
import { appliesMethod } from "./failures";
import { Kernels } from "./Kernels";
import { MailText } from "./MailText";
import { Matrices } from "./Matrices";
import { Method } from "./Method";
import { cellsOf, firstCell } from "./model";
import { Numbers } from "./Numbers";
import { OnThisPage } from "./OnThisPage";
import { Sweep } from "./Sweep";
import { TargetSection } from "./TargetSection";

const route = getRouteApi("/r/$id");

export function ReportPage() {
  const { id } = route.useParams();
  const search = route.useSearch();
  const { first, report, text } = useSuspenseQuery(reportPageQuery(id)).data;
  const { submission } = report;
  const finished = submission.state === "finished";
  useEvents(id, { enabled: !finished });

  const cells = useMemo(() => cellsOf(report), [report]);
  const selected = useMemo(
    () => cells.find(cell => cell.key === search.cell) ?? firstCell(cells),
    [cells, search.cell],
  );
  return (
    <article className="report">
      <title>{`Report ${id}: ${oneLine(submission.title) || `Submission ${id}`} · wqlab`}</title>
      <FirstScreen html={first} />
      {!finished && (
        <Progress
          done={submission.eta.done_boots}
          total={submission.eta.total_boots}
          noun="boots"
          finishAt={submission.eta.finish_at}
        >
          {submission.eta.what}
        </Progress>
      )}
      <Sweep report={report} />
      {selected && <Matrices report={report} cells={cells} selected={selected} search={search} />}
      <Changed report={report} />
      <MailText text={text} />
      <OnThisPage report={report} />
      {selected ? (
        <>
          <CellSection
            report={report}
            cells={cells}
            selected={selected}
            drawn={selected === firstCell(cells) && first.includes("report-boots")}
          />
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
    </article>
  );
}

function whyNoComparisons(report: Report, finished: boolean): string {
  if (!finished) return "Figures appear once a run has completed blocks.";
  if (report.targets.length > 0 && report.targets.every(target => target.byte_identical))
    return "The kernels are byte-identical: there is nothing to measure.";
  return "No run of this submission produced figures. See the failures on this page.";
}

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { reportQuery } from "@/api/queries";
import type { Comparison } from "@/api/types";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Page, Section } from "@/parts/Page";
import { ArmValue, Effect } from "@/parts/Value";
import { VerdictBadge } from "@/parts/VerdictBadge";

const route = getRouteApi("/submissions/$id/report");

const columns: Column<Comparison>[] = [
  { id: "scenario", header: "scenario", value: of => of.scenario, rowHeader: true },
  { id: "setting", header: "setting", value: of => of.setting },
  { id: "metric", header: "metric", value: of => of.metric },
  {
    id: "baseline",
    header: "baseline",
    numeric: true,
    value: of => of.baseline?.mean,
    cell: of => <ArmValue arm={of.baseline} of={[of.baseline, of.candidate]} />,
  },
  {
    id: "candidate",
    header: "candidate",
    numeric: true,
    value: of => of.candidate?.mean,
    cell: of => <ArmValue arm={of.candidate} of={[of.baseline, of.candidate]} />,
  },
  { id: "effect", header: "change", numeric: true, value: of => of.effect, cell: of => <Effect of={of} /> },
  {
    id: "verdict",
    header: "verdict",
    value: of => of.verdict,
    cell: of => <VerdictBadge verdict={of.verdict} />,
  },
];

export function ReportPage() {
  const { id } = route.useParams();
  const { data: report } = useSuspenseQuery(reportQuery(id));
  return (
    <Page
      title={`Report ${id}: ${oneLine(report.submission.title)}`}
      trail={
        <Link to="/submissions/$id" params={{ id }}>
          Submission {id}
        </Link>
      }
    >
      {report.targets.map(target => (
        <Section
          key={target.run_id}
          id={`run-${target.run_id}`}
          title={`${target.plan.name} on ${target.device_type}`}
          lead={
            <>
              <VerdictBadge verdict={target.verdict} /> {target.headline}
            </>
          }
        >
          <DataTable
            caption={`Comparisons of ${target.plan.name} on ${target.device_type}`}
            captionHidden
            columns={columns}
            rows={target.comparisons}
            rowKey={of => `${of.question} ${of.kernel} ${of.scenario} ${of.setting} ${of.metric}`}
          />
        </Section>
      ))}
    </Page>
  );
}

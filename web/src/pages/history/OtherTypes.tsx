/** The same metric on other device types. */
import { useQuery } from "@tanstack/react-query";
import { historyLinesQuery } from "@/api/historyQueries";
import type { HistoryLine } from "@/api/types";
import { metricName } from "@/lib/numbers";
import { DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import { Skeleton } from "@/parts/Skeleton";
import { LINE_COLUMNS } from "./Lines";

export function OtherTypes({ line }: { line: HistoryLine }) {
  const { tree, ref, plan, scenario, setting, metric } = line;
  const { data: page } = useQuery(
    historyLinesQuery({ tree, ref, plan, scenario, setting, metric, limit: 50 }),
  );
  const others = (page?.items ?? []).filter(each => each.id !== line.id);
  if (page && others.length === 0) return null;
  return (
    <Section id="types" title="On other device types">
      {page ? (
        <DataTable
          caption={`${metricName(metric)} on other device types`}
          captionHidden
          columns={LINE_COLUMNS}
          rows={others}
          rowKey={each => each.id}
          fixedOrder
          narrow="stack"
        />
      ) : (
        <Skeleton lines={3} height="3rem" />
      )}
    </Section>
  );
}

/** The same metric on other device types, over the same heads. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { historyLineQuery, historyLinesQuery } from "@/api/historyQueries";
import type { HistoryLineData } from "@/api/types";
import { count } from "@/lib/numbers";
import { Section } from "@/parts/Page";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./history.module.css";
import { MiniChart } from "./MiniChart";
import { levelText } from "./points";
import type { Range, View } from "./view";

/** Each is a request with all points of a line. */
const MOST_CHARTS = 8;

interface OtherTypesProps {
  line: HistoryLineData;
  range: Range;
  view: View;
}

export function OtherTypes({ line, range, view }: OtherTypesProps) {
  const { tree, ref, plan, scenario, setting, metric } = line;
  const { data: page } = useQuery(
    historyLinesQuery({ tree, ref, plan, scenario, setting, metric, limit: 50 }),
  );
  const others = (page?.items ?? []).filter(each => each.id !== line.id);
  const shown = others.slice(0, MOST_CHARTS);
  const found = useQueries({ queries: shown.map(each => historyLineQuery(each.id)) });
  const charts = found.flatMap(({ data }) => (data ? [data] : []));
  const key = charts.map(each => `${each.id}.${each.points}`).join(" ");
  const { start, end } = range;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says which charts are loaded
  const heads = useMemo(() => sharedHeads(line, charts, { start, end }), [line, key, start, end]);
  if (page && others.length === 0) return null;
  return (
    <Section
      id="types"
      title="On other device types"
      lead="The same heads from left to right; each chart has its own scale of values."
    >
      {!page ? (
        <Skeleton lines={3} height="3rem" />
      ) : (
        <ul className={classes.multiples}>
          {shown.map((each, index) => {
            const data = found[index]?.data;
            return (
              <li key={each.id}>
                <Link
                  to="/history/$id"
                  params={{ id: each.id }}
                  search={{ from: view.from, to: view.to, at: view.at }}
                  className={classes.multiple}
                >
                  <span className={classes.type}>{each.device_type}</span>
                  <span className="muted">
                    {levelText(each)}
                    {each.open_shifts > 0 && `, ${count(each.open_shifts, "open shift")}`}
                  </span>
                  {data ? (
                    <MiniChart line={data} heads={heads} at={view.at} />
                  ) : (
                    <Skeleton lines={1} height="84px" />
                  )}
                </Link>
              </li>
            );
          })}
        </ul>
      )}
      {others.length > MOST_CHARTS && (
        <p>
          <Link to="/history" search={{ tree, plan, metric }}>
            {count(others.length - MOST_CHARTS, "more device type")}
          </Link>
        </p>
      )}
    </Section>
  );
}

/** Return the ids of the heads between the ends of a range that any of the lines has, ascending. */
export function sharedHeads(
  { series }: HistoryLineData,
  others: readonly HistoryLineData[],
  { start, end }: Range,
): number[] {
  const first = series[start]?.head.id ?? 0;
  const last = end >= series.length ? Number.POSITIVE_INFINITY : (series[end - 1]?.head.id ?? 0);
  const from = start <= 0 ? 0 : first;
  const ids = new Set(series.slice(start, end).map(point => point.head.id));
  for (const other of others)
    for (const { head } of other.series) if (head.id >= from && head.id <= last) ids.add(head.id);
  return [...ids].sort((a, b) => a - b);
}

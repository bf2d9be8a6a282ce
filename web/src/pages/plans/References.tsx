import { useMemo } from "react";
import type { Reference, TestPlan } from "@/api/types";
import { asPublished, number, places, spread } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";

const ORIGINS = ["kernel", "machine", "source"] as const;

/** Table of published figures. An origin shared by all rows is shown once above the table. */
export function References({ plan }: { plan: TestPlan }) {
  const { references } = plan;
  const shared = ORIGINS.filter(origin => new Set(references.map(each => each[origin])).size === 1);
  const columns = useMemo(() => columnsOf(plan), [plan]);
  return (
    <>
      {shared.length > 0 && (
        <dl className="facts">
          {shared.map(origin => [
            <dt key={`${origin} name`}>{capitalized(origin)}</dt>,
            <dd key={`${origin} text`}>{oneLine(references[0]?.[origin] ?? "")}</dd>,
          ])}
        </dl>
      )}
      <DataTable
        caption={`Published figures for ${plan.name}`}
        captionHidden
        columns={columns}
        rows={references}
        rowKey={each =>
          `${each.scenario} ${each.setting} ${each.relative_to} ${each.metric} ${each.source} ${each.machine}`
        }
      />
    </>
  );
}

function columnsOf(plan: TestPlan): Column<Reference>[] {
  const { references } = plan;
  const varying = ORIGINS.filter(origin => new Set(references.map(each => each[origin])).size > 1);
  // All figures of a metric use the number of digits that the authors used.
  const decimals = (metric: string) =>
    places(
      references
        .filter(each => each.metric === metric)
        .flatMap(each => [each.mean, ...(each.stddev == null ? [] : [each.stddev])]),
    );
  const figure = (row: Reference) =>
    row.relative_to == null ? spread(row, decimals(row.metric)) : asPublished(row.mean);
  const settingOf = (row: Reference) =>
    row.relative_to == null ? row.setting : `${row.setting} vs. ${row.relative_to}`;
  return [
    { id: "scenario", header: "Scenario", value: row => row.scenario },
    ...(plan.axes.length > 0
      ? [
          {
            id: "setting",
            header: "Setting",
            value: settingOf,
            cell: (row: Reference) => (
              <>
                <code className="nowrap">{row.setting}</code>
                {row.relative_to != null && (
                  <>
                    {" vs. "}
                    <code className="nowrap">{row.relative_to}</code>
                  </>
                )}
              </>
            ),
          },
        ]
      : []),
    { id: "metric", header: "Metric", value: row => row.metric, cell: row => <code>{row.metric}</code> },
    { id: "mean", header: "Mean", numeric: true, value: row => row.mean, text: figure, cell: figure },
    {
      id: "unit",
      header: "Unit",
      value: row =>
        row.relative_to == null ? plan.metrics.find(each => each.name === row.metric)?.unit : "%",
    },
    {
      id: "n",
      header: "n",
      numeric: true,
      value: row => row.n,
      text: row => (row.n == null ? "" : number(row.n, 0)),
    },
    ...varying.map(origin => ({
      id: origin,
      header: capitalized(origin),
      value: (row: Reference) => oneLine(row[origin]),
    })),
  ];
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Published figures next to this lab's measurements. They are not compared and do not affect verdicts. */
import type { TargetReport } from "@/api/types";
import { asPublished, metricName, placesOfArms, signed, spread } from "@/lib/numbers";
import { EVIDENCE } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { type PublishedRow, publishedOf } from "./model";
import classes from "./Published.module.css";

export function Published({ target }: { target: TargetReport }) {
  const rows = publishedOf(target).filter(row => row.measured !== null);
  if (rows.length === 0) return null;
  const sources = [...Map.groupBy(rows, ({ reference }) => sourceOf(reference)).keys()];
  return (
    <div className={classes.whole}>
      <DataTable
        caption="Published figures (other kernels and machines)"
        columns={COLUMNS}
        rows={rows}
        rowKey={row => row.key}
      />
      <ul className={classes.sources}>
        {sources.map(source => (
          <li key={source}>{source}</li>
        ))}
      </ul>
    </div>
  );
}

/** One published figure as a sentence. */
export function PublishedFigure({ row: { reference, unit } }: { row: PublishedRow }) {
  return (
    <p className={classes.one}>
      Published{reference.setting && <> for {reference.setting}</>}: {figure(reference)} {unit}
      {reference.relative_to != null && ` vs. ${reference.relative_to}`}
      {reference.n != null && `, ${reference.n} runs`}. Source (other kernel and machine):{" "}
      {sourceOf(reference)}. Not part of the verdict.
    </p>
  );
}

function figure({ mean, stddev, relative_to }: PublishedRow["reference"]): string {
  return relative_to == null ? spread({ mean, stddev: stddev ?? null }) : asPublished(mean);
}

function measuredHere({ measured, reference }: PublishedRow): string {
  if (measured === null) return "";
  return reference.relative_to == null ? spread(measured, placesOfArms([measured])) : signed(measured.mean);
}

function sourceOf({ kernel, machine, source }: PublishedRow["reference"]): string {
  return `${kernel}; ${machine}; ${source}`;
}

const COLUMNS: Column<PublishedRow>[] = [
  { id: "scenario", header: "Scenario", value: row => row.reference.scenario },
  {
    id: "setting",
    header: "Setting",
    value: ({ reference: { setting, relative_to } }) =>
      relative_to == null ? setting : `${setting} vs. ${relative_to}`,
    cell: row => (
      <>
        <code>{row.reference.setting}</code>
        {row.reference.relative_to != null && (
          <>
            {" "}
            vs. <code>{row.reference.relative_to}</code>
          </>
        )}
      </>
    ),
  },
  { id: "metric", header: "Metric", rowHeader: true, value: row => metricName(row.reference.metric) },
  {
    id: "published",
    header: "Published",
    numeric: true,
    value: row => row.reference.mean,
    text: row => figure(row.reference),
  },
  {
    id: "measured",
    header: "Measured",
    numeric: true,
    value: row => row.measured?.mean,
    text: measuredHere,
  },
  { id: "unit", header: "Unit", value: row => row.unit },
  {
    id: "evidence",
    header: "Evidence",
    value: row => row.evidence && EVIDENCE[row.evidence].word,
    cell: row => row.evidence && <EvidenceMark evidence={row.evidence} />,
  },
];

/** Columns that tables of comparisons share. What is no evidence shows a mean, and nothing in any other column. */
import { Link } from "@tanstack/react-router";
import { change, interval, number, placesOfArms, spread, unitOfEffect } from "@/lib/numbers";
import { EVIDENCE, spoken, VERDICTS } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { ArmValue } from "@/parts/Value";
import { VerdictBadge } from "@/parts/VerdictBadge";
import type { Cell } from "./model";

type Side = "baseline" | "candidate";

export function armColumn(side: Side, header: string): Column<Cell> {
  return {
    id: side,
    header,
    hint: "Mean and standard deviation over boots; each boot counts once, with the median of its repetitions",
    numeric: true,
    value: ({ of }) => of[side]?.mean,
    text: ({ of, column }) => {
      const arm = of[side];
      if (arm === null) return "";
      const decimals = placesOfArms(column);
      return of.exact ? number(arm.mean, decimals) : spread(arm, decimals);
    },
    cell: ({ of, column }) => <ArmValue arm={of[side]} of={column} exact={of.exact} />,
  };
}

/** The metric and what it is counted in; leads to its comparison. */
export function metricColumn(more: { hash?: string; resetScroll?: boolean }): Column<Cell> {
  return {
    id: "metric",
    header: "metric",
    rowHeader: true,
    value: ({ of }) => of.metric,
    text: ({ of }) => (of.unit ? `${of.metric} (${of.unit})` : of.metric),
    cell: ({ key, of, target }) => (
      <>
        <Link
          from="/submissions/$id/report"
          to="."
          search={before => ({ ...before, cell: key })}
          title={target.plan.metrics.find(each => each.name === of.metric)?.summary}
          {...more}
        >
          {of.metric}
        </Link>
        {of.unit && <span className="muted"> {of.unit}</span>}
      </>
    ),
  };
}

export const changeColumn: Column<Cell> = {
  id: "effect",
  header: "change",
  hint: "Hodges-Lehmann estimate over blocks: percent, or the metric's unit where it can be zero",
  numeric: true,
  value: ({ of }) => of.effect,
  text: ({ of }) => (of.effect == null ? "" : `${change(of)} ${unitOfEffect(of)}`.trimEnd()),
};

export const intervalColumn: Column<Cell> = {
  id: "interval",
  header: "95 % interval",
  hint: "Distribution-free interval of the change; `exact` where every boot of each arm gave the same count",
  numeric: true,
  value: ({ of }) => of.ci95?.[0],
  text: ({ of }) => (of.exact ? "exact" : interval(of.ci95)),
};

export const bootsColumn: Column<Cell> = {
  id: "n",
  header: "n",
  hint: "Boots, never repetitions",
  numeric: true,
  value: ({ of }) => of.candidate?.n ?? of.baseline?.n,
};

export const evidenceColumn: Column<Cell> = {
  id: "evidence",
  header: "evidence",
  value: ({ of }) => EVIDENCE[of.evidence].word,
  cell: ({ of }) => <EvidenceMark evidence={of.evidence} />,
};

export const roleColumn: Column<Cell> = {
  id: "role",
  header: "role",
  hint: "Primary metrics make the verdict; explanatory ones say why and have none",
  value: ({ of }) => of.role,
};

export const verdictColumn: Column<Cell> = {
  id: "verdict",
  header: "verdict",
  value: ({ of }) => of.verdict,
  text: ({ of }) => (of.verdict === null ? "" : spoken(VERDICTS[of.verdict].word)),
  cell: ({ of }) =>
    of.verdict === null ? <span className="muted">–</span> : <VerdictBadge verdict={of.verdict} />,
};

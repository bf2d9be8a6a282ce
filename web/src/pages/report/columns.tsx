/** Columns shared by tables of comparisons. Comparisons without evidence show only their means. */
import { Link } from "@tanstack/react-router";
import { change, intervalOf, metricName, number, placesOfArms, spread } from "@/lib/numbers";
import { EVIDENCE, humanize, VERDICTS } from "@/lib/words";
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
    hint: "Mean and standard deviation over boots; the value of a boot is the median of its repetitions",
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

/** Metric and unit, as a link to the comparison. */
export function metricColumn(more: { hash?: string; resetScroll?: boolean }): Column<Cell> {
  return {
    id: "metric",
    header: "Metric",
    rowHeader: true,
    value: ({ of }) => of.metric,
    text: ({ of }) => `${metricName(of.metric)}${of.unit && ` (${of.unit})`}`,
    cell: ({ key, of, target }) => (
      <>
        <Link
          from="/r/$id"
          to="."
          search={before => ({ ...before, cell: key })}
          title={target.plan.metrics.find(each => each.name === of.metric)?.summary}
          {...more}
        >
          {metricName(of.metric)}
        </Link>
        {of.unit && <span className="muted"> {of.unit}</span>}
      </>
    ),
  };
}

export const changeColumn: Column<Cell> = {
  id: "effect",
  header: "Change",
  hint: "Hodges-Lehmann estimate over blocks: in percent, or in the metric's unit if it can be zero",
  numeric: true,
  value: ({ of }) => of.effect,
  text: ({ of }) => (of.effect == null ? "" : `${change(of)} ${of.effect_unit}`.trimEnd()),
};

export const intervalColumn: Column<Cell> = {
  id: "interval",
  header: "95 % interval",
  hint: "Distribution-free interval of the change; “exact” if all boots of each arm gave the same count",
  numeric: true,
  value: ({ of }) => of.ci95?.[0],
  text: ({ of }) => intervalOf(of),
};

export const bootsColumn: Column<Cell> = {
  id: "n",
  header: "n",
  hint: "Number of boots",
  numeric: true,
  value: ({ of }) => of.candidate?.n ?? of.baseline?.n,
};

export const evidenceColumn: Column<Cell> = {
  id: "evidence",
  header: "Evidence",
  value: ({ of }) => EVIDENCE[of.evidence].word,
  cell: ({ of }) => <EvidenceMark evidence={of.evidence} />,
};

export const roleColumn: Column<Cell> = {
  id: "role",
  header: "Role",
  hint: "Primary metrics decide the verdict; explanatory metrics have no verdict",
  value: ({ of }) => of.role,
};

export const verdictColumn: Column<Cell> = {
  id: "verdict",
  header: "Verdict",
  value: ({ of }) => of.verdict,
  text: ({ of }) => (of.verdict === null ? "" : humanize(VERDICTS[of.verdict].word)),
  cell: ({ of }) => of.verdict && <VerdictBadge verdict={of.verdict} />,
};

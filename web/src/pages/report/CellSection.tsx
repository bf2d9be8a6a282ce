/** One comparison: verdict, figures and boots. */
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { Report } from "@/api/types";
import { noiseFloorOf } from "@/lib/instrumented";
import { change, count, countsSeeds, intervalOf, metricName, number, pValue, withUnit } from "@/lib/numbers";
import { EVIDENCE, NOT_MEASURED, oneLine } from "@/lib/words";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { Section } from "@/parts/Page";
import { ArmValue } from "@/parts/Value";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { BisectLink } from "../bisections/BisectLink";
import { Boots } from "./Boots";
import { BootValues } from "./BootValues";
import classes from "./CellSection.module.css";
import { type CellPart, nearest, partChoices } from "./cellParts";
import { bisectionOf, type Cell, publishedOf } from "./model";
import { PublishedFigure } from "./Published";

interface CellSectionProps {
  report: Report;
  cells: readonly Cell[];
  selected: Cell;
  /** True if the first screen has drawn its boots. */
  drawn: boolean;
}

export function CellSection({ report, cells, selected, drawn }: CellSectionProps) {
  const { of, target } = selected;
  const published = useMemo(
    () =>
      publishedOf(target).filter(
        each =>
          each.reference.scenario === of.scenario &&
          each.reference.metric === of.metric &&
          (each.reference.setting === of.setting || each.reference.setting === of.reference),
      ),
    [target, of],
  );
  const summary = target.plan.metrics.find(each => each.name === of.metric)?.summary;
  const searched = bisectionOf(report, selected);
  const withoutEvidence = of.evidence === "none";
  return (
    <Section
      id="cell"
      title={
        <>
          {of.scenario}: {metricName(of.metric)} on {target.device_type}
        </>
      }
      lead={summary && `${oneLine(summary)}.`}
    >
      <ComparisonPicker cells={cells} selected={selected} />
      <div className={classes.verdict}>
        {!withoutEvidence && <VerdictBadge verdict={of.verdict} />} <EvidenceMark evidence={of.evidence} />
        <span>{oneLine(of.reason) || (withoutEvidence && EVIDENCE.none.meaning)}</span>
        {searched && <BisectLink of={searched}>Find the commit</BisectLink>}
      </div>
      <Figures selected={selected} />
      {published.map(row => (
        <PublishedFigure key={row.key} row={row} />
      ))}
      {!drawn && <Boots of={selected} />}
      <BootValues selected={selected} />
    </Section>
  );
}

/** Figures computed by the server; without evidence, only the two means. */
function Figures({ selected: { of, column, target } }: { selected: Cell }) {
  const [first, second] = of.question === "kernel" ? ["Baseline", "Candidate"] : ["Reference", "Setting"];
  const unit = <span className="muted"> {of.unit}</span>;
  const items: [string, ReactNode][] = [
    [
      first as string,
      <>
        <ArmValue arm={of.baseline} of={column} exact={of.exact} />
        {unit}
      </>,
    ],
    [
      second as string,
      <>
        <ArmValue arm={of.candidate} of={column} exact={of.exact} />
        {unit}
      </>,
    ],
  ];
  if (of.not_measured != null) items.push(["Not measured", NOT_MEASURED[of.not_measured]]);
  if (of.effect != null) items.push(["Change", `${change(of)} ${of.effect_unit}`]);
  if (of.effect != null) items.push(["95 % interval", intervalOf(of) || "none yet"]);
  if (of.delta) items.push(["Threshold", withUnit(Number(of.delta.toPrecision(3)), of.effect_unit)]);
  const floor = noiseFloorOf(target, of);
  if (floor) items.push(["Noise floor", floor.replace("noise floor ", "")]);
  if (of.p != null) items.push(["p", pValue(of.p)]);
  if (of.p_adjusted != null) items.push(["p, adjusted", pValue(of.p_adjusted)]);
  for (const [name, arm] of [
    [first, of.baseline],
    [second, of.candidate],
  ] as const)
    if (arm?.modes)
      items.push([
        `Two modes, ${name}`,
        arm.modes.map(mode => `${count(mode.n, "boot")} near ${number(mode.mean)} ${of.unit}`).join(", "),
      ]);
  items.push([
    "n",
    `${of.baseline?.n ?? 0} and ${of.candidate?.n ?? 0} ${countsSeeds(of.evidence) ? "seeds" : "boots"}${of.blocks_discarded > 0 ? `, ${of.blocks_discarded} blocks discarded` : ""}`,
  ]);
  if (of.blocks_needed != null && of.blocks_needed > 0)
    items.push(["Blocks needed", `${count(of.blocks_needed, "more block")} for a decision`]);
  return (
    <dl className={classes.numbers}>
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const LABELS: Record<CellPart, string> = {
  target: "Topology",
  scenario: "Scenario",
  setting: "Setting",
  metric: "Metric",
  question: "Compared",
};

/** Select fields for the parts of the comparison. Changing one keeps the others if possible. */
function ComparisonPicker({ cells, selected }: { cells: readonly Cell[]; selected: Cell }) {
  const navigate = useNavigate({ from: "/r/$id" });
  const choices = useMemo(() => partChoices(cells, selected), [cells, selected]);
  return (
    <div className={`${classes.pick} no-print`}>
      {choices.map(({ place, value, options }) =>
        options.length < 2 ? null : (
          <label key={place}>
            <span>{LABELS[place]}</span>
            <select
              value={value}
              onChange={event =>
                void navigate({
                  to: ".",
                  search: before => ({
                    ...before,
                    cell: nearest(cells, selected, place, event.target.value).key,
                  }),
                  resetScroll: false,
                })
              }
            >
              {options.map(option => (
                <option key={option.value} value={option.value}>
                  {option.name}
                </option>
              ))}
            </select>
          </label>
        ),
      )}
    </div>
  );
}

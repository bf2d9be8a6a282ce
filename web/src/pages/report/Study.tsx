/** Table of settings compared with the reference setting: figures and changes. */
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { TargetReport } from "@/api/types";
import { TradeoffFigure } from "@/figures/TradeoffFigure";
import { change, intervalOf, metricName, placesOfArms, spread } from "@/lib/numbers";
import { EVIDENCE, VERDICTS } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { ArmValue } from "@/parts/Value";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { type Cell, type Study, type StudyRow, studiesOf, tradeoffOf } from "./model";
import classes from "./Study.module.css";

export function Studies({ target, cells }: { target: TargetReport; cells: readonly Cell[] }) {
  const studies = useMemo(() => studiesOf(target, cells), [target, cells]);
  return studies.map(study => (
    <OneStudy key={study.kernel} target={target} study={study} named={studies.length > 1} />
  ));
}

function OneStudy({ target, study, named }: { target: TargetReport; study: Study; named: boolean }) {
  const columns = useMemo(() => columnsOf(study), [study]);
  const kernel = named ? ` on the ${study.kernel} kernel` : "";
  const scenarios = target.plan.scenarios.filter(({ name }) => study.rows.some(row => row.scenario === name));
  return (
    <div className={classes.study}>
      <DataTable
        caption={`Settings against ${study.reference}${kernel}`}
        columns={columns}
        rows={study.rows}
        rowKey={row => row.key}
        mark={row => (row.isReference ? "reference" : undefined)}
      />
      <ul className={classes.notes}>
        {study.metrics.map(({ name, summary, evidence }) => (
          <li key={name}>
            <strong>{name}</strong> <EvidenceMark evidence={evidence} /> {summary}.
            {evidence === "none" && ` ${EVIDENCE.none.meaning}`}
          </li>
        ))}
        {scenarios.map(({ name, summary }) => (
          <li key={name}>
            <strong>{name}</strong> {summary}.
          </li>
        ))}
      </ul>
      <Tradeoff target={target} study={study} kernel={kernel} />
    </div>
  );
}

function columnsOf(study: Study): Column<StudyRow>[] {
  const primary = study.metrics.find(({ name }) => name === study.primary);
  const judged = primary !== undefined && primary.evidence !== "none";
  return [
    { id: "scenario", header: "Scenario", value: row => row.scenario },
    {
      id: "setting",
      header: "Setting",
      rowHeader: true,
      value: row => row.setting,
      cell: row => <code>{row.setting}</code>,
    },
    ...study.metrics.map(({ name, unit, summary, evidence }): Column<StudyRow> => {
      const arms = (scenario: string) =>
        study.rows.filter(row => row.scenario === scenario).map(row => row.figures.get(name) ?? null);
      return {
        id: name,
        // In the header, so that a copied table contains the unit.
        header: `${metricName(name)}${unit && ` (${unit})`}${evidence === "none" ? `, ${EVIDENCE.none.word}` : ""}`,
        hint: `${summary}. Evidence: ${EVIDENCE[evidence].word}.`,
        numeric: true,
        value: row => row.figures.get(name)?.mean,
        text: row => {
          const arm = row.figures.get(name);
          return arm ? spread(arm, placesOfArms(arms(row.scenario))) : "";
        },
        cell: row => <ArmValue arm={row.figures.get(name)} of={arms(row.scenario)} />,
      };
    }),
    ...(judged
      ? ([
          {
            id: "effect",
            header: `vs. reference, ${study.primary}`,
            hint: `Against ${study.reference}, paired within each boot`,
            numeric: true,
            value: row => (row.isReference ? 0 : row.primary?.of.effect),
            text: row => effectOf(row),
          },
          {
            id: "interval",
            header: "95 % interval",
            numeric: true,
            value: row => row.primary?.of.ci95?.[0],
            text: row => intervalOf(row.primary?.of),
          },
        ] satisfies Column<StudyRow>[])
      : []),
    {
      id: "n",
      header: "n",
      hint: "Number of boots",
      numeric: true,
      value: row => row.figures.get(study.primary)?.n,
    },
    {
      id: "verdict",
      header: "Verdict",
      value: row => (row.isReference ? "reference" : row.primary?.of.verdict),
      text: row => {
        const verdict = row.primary?.of.verdict;
        return row.isReference ? "reference" : verdict ? VERDICTS[verdict].word : "";
      },
      cell: row =>
        row.primary === null ? (
          <span className="muted">{row.isReference ? "reference" : "–"}</span>
        ) : (
          <Link
            from="/r/$id"
            to="."
            search={before => ({ ...before, cell: row.primary?.key ?? "" })}
            hash="cell"
            className={classes.verdict}
          >
            <span className="hidden-visually">
              {row.scenario} {row.setting}:{" "}
            </span>
            <VerdictBadge verdict={row.primary.of.verdict} />
          </Link>
        ),
    },
  ];
}

function effectOf(row: StudyRow): string {
  const of = row.primary?.of;
  return of?.effect == null ? "" : `${change(of)} ${of.effect_unit}`.trimEnd();
}

function Tradeoff({ target, study, kernel }: { target: TargetReport; study: Study; kernel: string }) {
  const trade = useMemo(() => tradeoffOf(target, study), [target, study]);
  const means = useMemo(
    () =>
      trade
        ? study.rows.map(({ scenario, setting, figures }) => ({
            scenario,
            setting,
            locality: figures.get(trade.locality.name) ?? null,
            conservation: figures.get(trade.conservation.name) ?? null,
          }))
        : [],
    [trade, study],
  );
  if (!trade) return null;
  return (
    <TradeoffFigure
      title={`Locality against work conservation${kernel}`}
      locality={trade.locality}
      conservation={trade.conservation}
      hasConservation={trade.conservation.evidence !== "none"}
      dots={trade.dots}
      means={means}
    />
  );
}

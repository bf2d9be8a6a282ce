/** The value of every boot on both sides of a comparison, by block. */
import type * as Plot from "@observablehq/plot";
import { type ReactNode, useCallback, useMemo } from "react";
import type { ArmSummary } from "@/api/types";
import { number, places } from "@/lib/numbers";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import classes from "./figures.module.css";
import { LazyPlot } from "./LazyPlot";
import { domainOf } from "./marks";

export interface BootsSide {
  name: string;
  dots: readonly { block: number; value: number }[];
  /** The server's summary of these boots. */
  summary: ArmSummary | null;
}

interface BootsFigureProps {
  title: string;
  metric: string;
  unit: string;
  baseline: BootsSide;
  candidate: BootsSide;
  /** False without evidence: then only a table of values is shown. */
  drawn: boolean;
  /** Additional description. */
  description?: ReactNode;
}

const HEIGHT = 260;

interface Pair {
  block: number;
  a: number | null;
  b: number | null;
}

export function BootsFigure({
  title,
  metric,
  unit,
  baseline,
  candidate,
  drawn,
  description,
}: BootsFigureProps) {
  const pairs = useMemo(() => pairsOf(baseline, candidate), [baseline, candidate]);
  const draw = useCallback(
    (width: number, plot: typeof Plot) =>
      boots(pairs, [baseline.summary, candidate.summary], [metric, unit], width, plot),
    [pairs, baseline.summary, candidate.summary, metric, unit],
  );
  const table = useMemo(
    () => (
      <DataTable
        caption={title}
        captionHidden
        columns={columnsOf(pairs, baseline.name, candidate.name)}
        rows={pairs}
        rowKey={pair => pair.block}
        maxHeight="16rem"
      />
    ),
    [title, pairs, baseline.name, candidate.name],
  );
  if (!drawn) {
    return (
      <div className={classes.values}>
        <strong>{title}</strong>
        {description && <p className={classes.note}>{description}</p>}
        {table}
      </div>
    );
  }
  return (
    <Figure
      title={title}
      description={
        <>
          Disc: {baseline.name}; diamond: {candidate.name}. One mark per boot, the median of its repetitions;
          a line joins the two boots of a block. Dashed and dotted lines: the means.
          {description && <> {description}</>}
        </>
      }
      table={table}
    >
      <div className={classes.keys}>
        <Key arm="a" name={baseline.name} />
        <Key arm="b" name={candidate.name} />
      </div>
      <LazyPlot draw={draw} height={HEIGHT} />
    </Figure>
  );
}

function Key({ arm, name }: { arm: "a" | "b"; name: string }) {
  return (
    <span className={classes.key}>
      <svg viewBox="-6 -6 12 12" width="12" height="12" aria-hidden="true" data-arm={arm}>
        {arm === "a" ? <circle r="4" /> : <path d="M0-5.5 5.5 0 0 5.5-5.5 0Z" />}
      </svg>
      {name}
    </span>
  );
}

export function pairsOf(baseline: BootsSide, candidate: BootsSide): Pair[] {
  const a = new Map(baseline.dots.map(({ block, value }) => [block, value]));
  const b = new Map(candidate.dots.map(({ block, value }) => [block, value]));
  return [...new Set([...a.keys(), ...b.keys()])]
    .toSorted((left, right) => left - right)
    .map(block => ({ block, a: a.get(block) ?? null, b: b.get(block) ?? null }));
}

function columnsOf(pairs: readonly Pair[], baseline: string, candidate: string): Column<Pair>[] {
  const decimals = places(pairs.flatMap(({ a, b }) => [a ?? 0, b ?? 0]));
  const text = (value: number | null) => (value === null ? "" : number(value, decimals));
  return [
    { id: "block", header: "block", rowHeader: true, numeric: true, value: pair => pair.block + 1 },
    { id: "a", header: baseline, numeric: true, value: pair => pair.a, text: pair => text(pair.a) },
    { id: "b", header: candidate, numeric: true, value: pair => pair.b, text: pair => text(pair.b) },
  ];
}

/** Return the plot options: blocks on the x axis, values on the y axis. */
export function boots(
  pairs: readonly Pair[],
  [a, b]: readonly (ArmSummary | null)[],
  [metric, unit]: readonly [string, string],
  width: number,
  plot: typeof Plot,
): Plot.PlotOptions {
  const values = pairs.flatMap(pair => [pair.a, pair.b]).filter(value => value !== null);
  const last = Math.max(0, ...pairs.map(pair => pair.block)) + 1;
  const step = (width - 80) / last;
  const offset = last > 40 ? 0 : 0.14;
  const r = step > 24 ? 4.5 : step > 10 ? 3.5 : 2.25;
  const decimals = places(values);
  const domain = domainOf(values.length > 0 ? values : [0]);
  const label = unit ? `${metric} (${unit})` : metric;
  const longest = Math.max(...domain.map(value => number(value, decimals).length));
  const left = pairs.filter(pair => pair.a !== null);
  const right = pairs.filter(pair => pair.b !== null);
  const title = (pair: Pair, value: number | null) =>
    `block ${pair.block + 1}: ${value === null ? "" : number(value, decimals)} ${unit}`;
  return {
    height: HEIGHT,
    marginLeft: Math.max(44, 20 + longest * 7),
    marginRight: 8,
    marginTop: 24,
    marginBottom: 40,
    x: {
      domain: [0.5, last + 0.5],
      label: "block",
      labelAnchor: "center",
      labelArrow: false,
      labelOffset: 34,
      ticks: last <= 20 ? Array.from({ length: last }, (_, at) => at + 1) : Math.floor(width / 60),
      tickFormat: (value: number) => (Number.isInteger(value) ? String(value) : ""),
      tickSize: 3,
    },
    y: { domain, label, labelArrow: false, grid: true, ticks: 5 },
    color: { type: "identity" },
    marks: [
      plot.ruleY(a ? [a.mean] : [], { stroke: "var(--arm-a)", strokeDasharray: "4 3", strokeOpacity: 0.7 }),
      plot.ruleY(b ? [b.mean] : [], { stroke: "var(--arm-b)", strokeDasharray: "1 3", strokeWidth: 1.5 }),
      plot.link(
        pairs.filter(pair => pair.a !== null && pair.b !== null),
        {
          x1: pair => pair.block + 1 - offset,
          x2: pair => pair.block + 1 + offset,
          y1: "a",
          y2: "b",
          stroke: "var(--line-strong)",
        },
      ),
      plot.dot(left, {
        x: pair => pair.block + 1 - offset,
        y: "a",
        r,
        fill: "var(--arm-a)",
        title: pair => title(pair, pair.a),
      }),
      plot.dot(right, {
        x: pair => pair.block + 1 + offset,
        y: "b",
        r: r * 1.15,
        symbol: "diamond",
        fill: "var(--paper)",
        stroke: "var(--arm-b)",
        strokeWidth: 1.75,
        title: pair => title(pair, pair.b),
      }),
    ],
  };
}

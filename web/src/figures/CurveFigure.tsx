/** A metric over an ordered quantity, with a line for each setting and shaded crossings. */
import type * as Plot from "@observablehq/plot";
import { useCallback } from "react";
import type { MetricCurve } from "@/api/types";
import { metricName, number, placesOfArms, spread } from "@/lib/numbers";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import { LazyPlot } from "./LazyPlot";
import { domainOf } from "./marks";

interface CurveFigureProps {
  title: string;
  summary: string;
  curve: MetricCurve;
}

export function CurveFigure({ title, summary, curve }: CurveFigureProps) {
  const draw = useCallback((width: number, plot: typeof Plot) => lines(curve, width, plot), [curve]);
  return (
    <Figure
      title={title}
      description={
        <>
          {summary}: the mean of the boots at each number of {curve.over}, with a line and a mark for each
          setting.
          {curve.crossings.length > 0 && " Shaded: the range in which two settings cross."}
          {curve.says.map(sentence => ` ${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`)}
        </>
      }
      table={
        <DataTable
          caption={title}
          captionHidden
          columns={columnsOf(curve)}
          rows={rowsOf(curve)}
          rowKey={row => row.scenario}
        />
      }
    >
      <LazyPlot draw={draw} height={HEIGHT} />
    </Figure>
  );
}

type Line = MetricCurve["lines"][number];
type Point = Line["points"][number];

interface Row {
  scenario: string;
  x: number;
  /** The point of each setting. */
  points: Map<string, Point>;
}

/** Return one row per scenario, ordered by x. */
export function rowsOf({ lines }: MetricCurve): Row[] {
  const rows = new Map<string, Row>();
  for (const { setting, points } of lines)
    for (const point of points) {
      const row = rows.get(point.scenario) ?? { scenario: point.scenario, x: point.x, points: new Map() };
      rows.set(point.scenario, row);
      row.points.set(setting, point);
    }
  return [...rows.values()].toSorted((a, b) => a.x - b.x);
}

function columnsOf(curve: MetricCurve): Column<Row>[] {
  const decimals = placesOfArms(curve.lines.flatMap(line => line.points));
  return [
    { id: "x", header: curve.over, numeric: true, value: row => row.x },
    { id: "scenario", header: "scenario", value: row => row.scenario, rowHeader: true },
    ...curve.lines.map(
      ({ setting }): Column<Row> => ({
        id: setting,
        header: setting,
        numeric: true,
        value: row => row.points.get(setting)?.mean,
        text: row => {
          const point = row.points.get(setting);
          return point ? spread(point, decimals) : "";
        },
      }),
    ),
  ];
}

const HEIGHT = 340;

/** Return the plot options. */
export function lines(curve: MetricCurve, width: number, plot: typeof Plot): Plot.PlotOptions {
  const settings = curve.lines.map(line => line.setting);
  const points = curve.lines.flatMap(({ setting, points: own }) => own.map(point => ({ ...point, setting })));
  const unit = curve.unit ? ` (${curve.unit})` : "";
  return {
    height: HEIGHT,
    marginLeft: 52,
    marginRight: 20,
    marginTop: 30,
    marginBottom: 40,
    x: {
      type: "log",
      label: curve.over,
      labelAnchor: "center",
      labelArrow: false,
      labelOffset: 34,
      // Ticks at the measured values, as many as fit.
      ticks: fittingTicks([...new Set(points.map(point => point.x))], width),
      tickFormat: (x: number) => number(x),
    },
    y: {
      domain: domainOf(points.map(point => point.mean)),
      label: `${metricName(curve.metric)}${unit}`,
      labelArrow: false,
      grid: true,
      ticks: 5,
    },
    symbol: { domain: settings, legend: true },
    color: { type: "identity" },
    marks: [
      plot.rectX(curve.crossings, { x1: "low", x2: "high", fill: "var(--sunken)" }),
      plot.ruleX(curve.crossings, { x: "estimate", stroke: "var(--line-strong)", strokeDasharray: "4 3" }),
      plot.line(points, { x: "x", y: "mean", z: "setting", stroke: "var(--muted)", strokeWidth: 1.5 }),
      plot.ruleX(
        points.filter(point => point.stddev != null),
        {
          x: "x",
          y1: point => point.mean - (point.stddev ?? 0),
          y2: point => point.mean + (point.stddev ?? 0),
          stroke: "var(--line-strong)",
        },
      ),
      plot.dot(points, {
        x: "x",
        y: "mean",
        symbol: "setting",
        r: 5,
        stroke: "var(--ink)",
        strokeWidth: 2,
        title: point =>
          `${point.setting}, ${number(point.x)} ${curve.over}: ${number(point.mean)} ${curve.unit} (n=${point.n})`,
      }),
    ],
  };
}

/** Select evenly spaced ticks, about 44 px each, including the first and the last. */
function fittingTicks(xs: readonly number[], width: number): number[] {
  const sorted = xs.toSorted((a, b) => a - b);
  const max = Math.max(2, Math.floor((width - 72) / 44));
  if (sorted.length <= max) return sorted;
  const step = (sorted.length - 1) / (max - 1);
  return Array.from({ length: max }, (_, at) => sorted[Math.round(at * step)] as number);
}

/** Trade-off between settings: locality of work against work conservation (busy CPUs). */
import type * as Plot from "@observablehq/plot";
import { useCallback } from "react";
import type { ArmSummary } from "@/api/types";
import { isPercent, number, places } from "@/lib/numbers";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import { LazyPlot } from "./LazyPlot";
import { domainOf } from "./marks";

/** The values of one boot with one setting. */
export interface TradeoffDot {
  scenario: string;
  setting: string;
  block: number;
  locality: number;
  /** Null if it was not measured or is not evidence. */
  conservation: number | null;
}

/** The server's summaries of those boots. */
export interface TradeoffMean {
  scenario: string;
  setting: string;
  locality: ArmSummary | null;
  conservation: ArmSummary | null;
}

interface Axis {
  name: string;
  unit: string;
  summary: string;
}

interface TradeoffFigureProps {
  title: string;
  locality: Axis;
  conservation: Axis;
  /** True if work conservation is evidence on this device; otherwise only locality is drawn. */
  hasConservation: boolean;
  dots: readonly TradeoffDot[];
  means: readonly TradeoffMean[];
}

export function TradeoffFigure({
  title,
  locality,
  conservation,
  hasConservation,
  dots,
  means,
}: TradeoffFigureProps) {
  const scenarios = [...new Set(means.map(each => each.scenario))];
  const settings = [...new Set(means.map(each => each.setting))];
  const draw = useCallback(
    (width: number, plot: typeof Plot) =>
      hasConservation
        ? plane(dots, means, [locality, conservation], width, plot)
        : strips(dots, means, locality, width, plot),
    [hasConservation, dots, means, locality, conservation],
  );
  const height = hasConservation
    ? PLANE + TOP
    : scenarios.length * (settings.length * STRIP + BETWEEN) + TOP + BOTTOM;
  return (
    <Figure
      title={title}
      description={
        hasConservation ? (
          <>
            Right: {lowerFirst(locality.summary)}. Up: {lowerFirst(conservation.summary)}. Small marks: boots;
            large marks: means. A setting further right and lower gains locality at the cost of idle CPUs.
          </>
        ) : (
          <>
            {locality.summary}: a dot for each boot, a line for their mean. {conservation.name}, the other
            side of the trade-off, depends on timing, which is not evidence on an emulated device. Its values
            are only in the table.
          </>
        )
      }
      table={
        <DataTable
          caption={title}
          captionHidden
          columns={columnsOf(means, locality, conservation)}
          rows={means}
          rowKey={row => `${row.scenario} ${row.setting}`}
        />
      }
    >
      <LazyPlot draw={draw} height={height} />
    </Figure>
  );
}

function columnsOf(means: readonly TradeoffMean[], x: Axis, y: Axis): Column<TradeoffMean>[] {
  const figure = (axis: Axis, of: (row: TradeoffMean) => ArmSummary | null): Column<TradeoffMean> => {
    const decimals = places(means.flatMap(row => of(row)?.mean ?? 0));
    return {
      id: axis.name,
      header: axis.unit ? `${axis.name} (${axis.unit})` : axis.name,
      numeric: true,
      value: row => of(row)?.mean,
      text: row => {
        const mean = of(row)?.mean;
        return mean === undefined ? "" : number(mean, decimals);
      },
    };
  };
  return [
    { id: "scenario", header: "scenario", value: row => row.scenario },
    { id: "setting", header: "setting", value: row => row.setting, rowHeader: true },
    figure(x, row => row.locality),
    figure(y, row => row.conservation),
  ];
}

const STRIP = 22;
const BETWEEN = 26;
const TOP = 8;
const BOTTOM = 40;
const PLANE = 320;

/** Return the plot options for locality alone: a line per scenario and setting. */
export function strips(
  dots: readonly TradeoffDot[],
  means: readonly TradeoffMean[],
  x: Axis,
  width: number,
  plot: typeof Plot,
): Plot.PlotOptions {
  const scenarios = [...new Set(means.map(each => each.scenario))];
  const longest = Math.max(...means.map(each => each.setting.length));
  const measured = means.filter(each => each.locality !== null);
  return {
    height: scenarios.length * (settingCount(means) * STRIP + BETWEEN) + TOP + BOTTOM,
    marginLeft: Math.min(width * 0.45, 12 + longest * 6.6),
    marginRight: 16,
    marginTop: TOP + BETWEEN - 8,
    marginBottom: BOTTOM,
    x: {
      domain: shareDomain(x.unit, [
        ...dots.map(each => each.locality),
        ...measured.map(each => each.locality?.mean ?? 0),
      ]),
      label: labelOf(x),
      labelAnchor: "center",
      labelArrow: false,
      labelOffset: 34,
      grid: true,
      ticks: Math.max(3, Math.floor(width / 110)),
    },
    y: { type: "band", domain: [...new Set(means.map(each => each.setting))], label: null, tickSize: 0 },
    fy: {
      domain: scenarios,
      label: null,
      axis: null,
      padding: 0.16,
    },
    color: { type: "identity" },
    marks: [
      plot.text(scenarios, {
        fy: scenario => scenario,
        text: scenario => scenario,
        frameAnchor: "top-left",
        textAnchor: "start",
        dy: -14,
        fontWeight: 600,
        fill: "var(--ink)",
      }),
      plot.ruleY(measured, { fy: "scenario", y: "setting", stroke: "var(--line)" }),
      plot.dot(dots, {
        fy: "scenario",
        x: "locality",
        y: "setting",
        r: 3.5,
        fill: "var(--ink)",
        fillOpacity: 0.55,
        title: each => `${each.setting}, block ${each.block + 1}: ${number(each.locality)} ${x.unit}`,
      }),
      plot.tickX(measured, {
        fy: "scenario",
        x: each => each.locality?.mean,
        y: "setting",
        insetTop: 3,
        insetBottom: 3,
        strokeWidth: 2,
        stroke: "var(--ink)",
      }),
    ],
  };
}

/** Return the plot options for both axes; scenarios are side by side, or stacked on narrow screens. */
export function plane(
  dots: readonly TradeoffDot[],
  means: readonly TradeoffMean[],
  [x, y]: readonly [Axis, Axis],
  width: number,
  plot: typeof Plot,
): Plot.PlotOptions {
  const scenarios = [...new Set(means.map(each => each.scenario))];
  const settings = [...new Set(means.map(each => each.setting))];
  const sideBySide = width / scenarios.length >= 200;
  const facet = sideBySide ? { fx: "scenario" } : { fy: "scenario" };
  const placed = dots.filter(each => each.conservation !== null);
  const measured = means.filter(each => each.locality !== null && each.conservation !== null);
  const xs = [...placed.map(each => each.locality), ...measured.map(each => each.locality?.mean ?? 0)];
  const ys = [
    ...placed.map(each => each.conservation ?? 0),
    ...measured.map(each => each.conservation?.mean ?? 0),
  ];
  return {
    height: sideBySide ? PLANE : scenarios.length * 220 + BOTTOM,
    marginLeft: 52,
    marginRight: 12,
    marginTop: 30,
    marginBottom: BOTTOM,
    x: {
      domain: domainOf(xs.length > 0 ? xs : [0]),
      label: labelOf(x),
      labelAnchor: "center",
      labelArrow: false,
      labelOffset: 34,
      grid: true,
      ticks: 4,
    },
    y: {
      domain: domainOf(ys.length > 0 ? ys : [0]),
      label: labelOf(y),
      labelArrow: false,
      grid: true,
      ticks: 5,
    },
    [sideBySide ? "fx" : "fy"]: { domain: scenarios, label: null },
    symbol: { domain: settings, legend: true },
    color: { type: "identity" },
    marks: [
      plot.frame({ stroke: "var(--line)" }),
      plot.dot(placed, {
        ...facet,
        x: "locality",
        y: "conservation",
        symbol: "setting",
        r: 2.5,
        stroke: "var(--muted)",
        strokeOpacity: 0.7,
        strokeWidth: 1,
      }),
      plot.dot(measured, {
        ...facet,
        x: each => each.locality?.mean,
        y: each => each.conservation?.mean,
        symbol: "setting",
        r: 6,
        stroke: "var(--ink)",
        strokeWidth: 2,
        title: each =>
          `${each.scenario} ${each.setting}: ${number(each.locality?.mean ?? 0)} ${x.unit}, ` +
          `${number(each.conservation?.mean ?? 0)} ${y.unit}`,
      }),
    ],
  };
}

function settingCount(means: readonly TradeoffMean[]): number {
  return new Set(means.map(each => each.setting)).size;
}

function lowerFirst(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

function labelOf({ name, unit }: Axis): string {
  return unit ? `${name} (${unit})` : name;
}

/** Return 0 to 100 for percentages, because a partial axis exaggerates differences; otherwise the values' domain. */
function shareDomain(unit: string, values: readonly number[]): [number, number] {
  return isPercent(unit) && values.every(value => value >= 0 && value <= 100) ? [0, 100] : domainOf(values);
}

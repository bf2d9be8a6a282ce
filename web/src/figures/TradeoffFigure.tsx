/** What settings trade: work kept near the CPU that queued it, against CPUs kept busy. */
import type * as Plot from "@observablehq/plot";
import { useCallback } from "react";
import type { ArmSummary } from "@/api/types";
import { number, places } from "@/lib/numbers";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import { LazyPlot } from "./LazyPlot";
import { domainOf } from "./marks";

/** One boot under one setting. */
export interface TradeoffDot {
  scenario: string;
  setting: string;
  block: number;
  locality: number;
  /** Null: not measured, or measured with a clock that proves nothing. */
  conservation: number | null;
}

/** The server's means over those boots. */
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
  /** Whether the second axis is evidence here; without it only the first is drawn. */
  both: boolean;
  dots: readonly TradeoffDot[];
  means: readonly TradeoffMean[];
}

export function TradeoffFigure({ title, locality, conservation, both, dots, means }: TradeoffFigureProps) {
  const scenarios = [...new Set(means.map(each => each.scenario))];
  const settings = [...new Set(means.map(each => each.setting))];
  const draw = useCallback(
    (width: number, plot: typeof Plot) =>
      both
        ? plane(dots, means, [locality, conservation], width, plot)
        : strips(dots, means, locality, width, plot),
    [both, dots, means, locality, conservation],
  );
  const height = both ? PLANE + TOP : scenarios.length * (settings.length * STRIP + BETWEEN) + TOP + BOTTOM;
  return (
    <Figure
      title={title}
      description={
        both ? (
          <>
            To the right: {lowered(locality.summary)}. Upwards: {lowered(conservation.summary)}. Small: boots;
            large: their mean. A setting that moves right and down buys locality with idle CPUs.
          </>
        ) : (
          <>
            {locality.summary}, a dot for each boot, a line for their mean. {conservation.name}, the other
            half of this trade, is measured with the device's clock: on an emulated device that is no evidence,
            so it stands in the table as a value and is not drawn.
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

/** One axis: a line per scenario and setting. */
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
    height: scenarios.length * (longestGroup(means) * STRIP + BETWEEN) + TOP + BOTTOM,
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

/** Two axes: scenarios side by side, or below each other where there is no room. */
export function plane(
  dots: readonly TradeoffDot[],
  means: readonly TradeoffMean[],
  [x, y]: readonly [Axis, Axis],
  width: number,
  plot: typeof Plot,
): Plot.PlotOptions {
  const scenarios = [...new Set(means.map(each => each.scenario))];
  const settings = [...new Set(means.map(each => each.setting))];
  const beside = width / scenarios.length >= 200;
  const facet = beside ? { fx: "scenario" } : { fy: "scenario" };
  const placed = dots.filter(each => each.conservation !== null);
  const measured = means.filter(each => each.locality !== null && each.conservation !== null);
  const xs = [...placed.map(each => each.locality), ...measured.map(each => each.locality?.mean ?? 0)];
  const ys = [
    ...placed.map(each => each.conservation ?? 0),
    ...measured.map(each => each.conservation?.mean ?? 0),
  ];
  return {
    height: beside ? PLANE : scenarios.length * 220 + BOTTOM,
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
    [beside ? "fx" : "fy"]: { domain: scenarios, label: null },
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
          `${each.scenario} ${each.setting}: ${number(each.locality?.mean ?? 0)} ${x.unit}, ${number(each.conservation?.mean ?? 0)} ${y.unit}`,
      }),
    ],
  };
}

function longestGroup(means: readonly TradeoffMean[]): number {
  return new Set(means.map(each => each.setting)).size;
}

function lowered(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

function labelOf({ name, unit }: Axis): string {
  return unit ? `${name} (${unit})` : name;
}

/** Shares are shown on all of 0 to 100: a part of them would make a small difference look large. */
function shareDomain(unit: string, values: readonly number[]): [number, number] {
  return unit === "%" && values.every(value => value >= 0 && value <= 100) ? [0, 100] : domainOf(values);
}

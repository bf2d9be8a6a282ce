/** A metric over the topologies of a sweep: effects with 95 % intervals, on an ordinal axis. */
import type * as Plot from "@observablehq/plot";
import { useCallback, useMemo } from "react";
import type { SweepCurve, SweepPoint } from "@/api/types";
import { interval, number, signed, withUnit } from "@/lib/numbers";
import { VERDICTS } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { LazyPlot } from "./LazyPlot";
import { domainOf, type Mark, markOf } from "./marks";

interface SweepFigureProps {
  /** Name of the curve: scenario, setting and metric. */
  name: string;
  curve: SweepCurve;
  /** What varies, in plural: `L3 domains`. */
  axis: string;
}

export function SweepFigure({ name, curve, axis }: SweepFigureProps) {
  const draw = useCallback(
    (width: number, plot: typeof Plot) => sweep(curve, axis, width, plot),
    [curve, axis],
  );
  const title = `${name}: ${curve.sentence}`;
  const columns = useMemo(() => columnsOf(curve, axis), [curve, axis]);
  const drawn = curve.points.some(point => point.effect != null);
  return (
    <Figure
      title={title}
      description={
        <>
          {drawn ? describe(curve) : "No point has an effect to draw."}
          {reasonsOf(curve, axis).map(reason => ` ${reason}.`)}
        </>
      }
      table={
        <DataTable
          caption={title}
          captionHidden
          columns={columns}
          rows={curve.points}
          rowKey={point => point.device_type}
          fixedOrder
        />
      }
    >
      {drawn && <LazyPlot draw={draw} height={HEIGHT} />}
    </Figure>
  );
}

function describe(curve: SweepCurve): string {
  const floors = curve.points.some(point => point.noise_floor != null);
  return [
    "Mark: change at this topology; line: 95 % interval",
    curve.delta ? `; grey: effects smaller than the threshold of ${withUnit(curve.delta, "%")}` : "",
    floors ? "; dashed: noise floor" : "",
    curve.direction === "higher_is_better" ? ". Higher is better." : ". Lower is better.",
  ].join("");
}

/** Return why points have no effect, each reason once with its points. */
function reasonsOf({ points }: SweepCurve, axis: string): string[] {
  const found = new Map<string, number[]>();
  for (const { reason, value } of points)
    if (reason) found.set(reason, [...(found.get(reason) ?? []), value]);
  return [...found].map(([reason, values]) => `${axis} ${values.join(", ")}: ${reason}`);
}

/** Return the word of a point's verdict. */
function wordOf({ verdict }: SweepPoint): string {
  return verdict === null ? "not measured" : VERDICTS[verdict].word;
}

function changeOf({ effect }: SweepPoint, unit: string): string {
  return effect == null ? "" : `${signed(effect)} ${unit}`.trimEnd();
}

function intervalOf({ ci95, exact }: SweepPoint): string {
  return interval(ci95) || (exact ? "exact" : "");
}

function columnsOf(curve: SweepCurve, axis: string): Column<SweepPoint>[] {
  return [
    { id: "value", header: axis, value: point => point.value, rowHeader: true },
    ...(["baseline", "candidate"] as const).map(arm => ({
      id: arm,
      header: `${armName(curve, arm)}, ${curve.unit}`,
      numeric: true,
      value: (point: SweepPoint) => point[arm],
      text: (point: SweepPoint) => (point[arm] == null ? "" : number(point[arm])),
    })),
    {
      id: "effect",
      header: "change",
      numeric: true,
      value: point => point.effect,
      text: point => changeOf(point, curve.effect_unit),
    },
    {
      id: "interval",
      header: "95 % interval",
      numeric: true,
      value: point => point.ci95?.[0],
      text: intervalOf,
    },
    {
      id: "seeds",
      header: "seeds",
      numeric: true,
      value: point => point.seeds,
      text: point => (point.seeds ? String(point.seeds) : ""),
    },
    {
      id: "verdict",
      header: "verdict",
      value: point => point.verdict,
      text: wordOf,
      cell: point => (point.verdict === null ? wordOf(point) : <VerdictBadge verdict={point.verdict} />),
    },
    {
      id: "floor",
      header: "noise floor",
      numeric: true,
      value: point => point.noise_floor,
      text: point => floorOf(point, curve),
    },
  ];
}

function armName({ question, reference, setting }: SweepCurve, arm: "baseline" | "candidate"): string {
  if (question === "kernel") return arm;
  return (arm === "baseline" ? reference : setting) || "default";
}

function floorOf({ noise_floor, effect }: SweepPoint, { question, effect_unit }: SweepCurve): string {
  if (question === "setting") return "not known";
  if (noise_floor != null) return `${Number(noise_floor.toPrecision(3))} ${effect_unit}`.trimEnd();
  return effect == null ? "" : "not measured";
}

const HEIGHT = 300;

/** Return the plot options. */
export function sweep(
  { points, delta, effect_unit }: SweepCurve,
  axis: string,
  width: number,
  plot: typeof Plot,
): Plot.PlotOptions {
  const drawn = points.filter(point => point.effect != null);
  const floors = drawn.flatMap(point =>
    point.noise_floor == null
      ? []
      : [-point.noise_floor, point.noise_floor].map(y => ({ x: point.value, y })),
  );
  const ends = drawn.flatMap(point => [point.effect ?? 0, ...(point.ci95 ?? [])]);
  const domain = domainOf([0, ...ends, ...floors.map(({ y }) => y)]);
  type Marked = SweepPoint & { mark: Mark };
  const marks: Marked[] = drawn.map(point => ({ ...point, mark: markOf(point.verdict) }));
  const intervals = marks.filter(({ ci95 }) => ci95 != null);
  const bandwidth = (width - MARGIN_LEFT) / points.length;
  const cap = {
    x: "value",
    stroke: ({ mark }: Marked) => mark.colour,
    strokeWidth: 2,
    inset: bandwidth / 2 - 7,
  };
  const dots = (filled: boolean) =>
    plot.dot(
      marks.filter(({ mark }) => mark.filled === filled),
      {
        x: "value",
        y: "effect",
        r: 5.5,
        symbol: ({ mark }: Marked) => mark.symbol,
        rotate: ({ mark }: Marked) => mark.rotate,
        fill: filled ? ({ mark }: Marked) => mark.colour : "var(--paper)",
        stroke: ({ mark }: Marked) => mark.colour,
        strokeWidth: 2,
        title: (point: Marked) =>
          `${point.value} ${axis}: ${changeOf(point, effect_unit)} ${intervalOf(point)}, ${wordOf(point)}`,
      },
    );
  return {
    height: HEIGHT,
    marginLeft: MARGIN_LEFT,
    marginRight: 0,
    marginTop: 26,
    marginBottom: 42,
    x: {
      type: "band",
      domain: points.map(({ value }) => value),
      padding: 0,
      label: axis,
      labelAnchor: "center",
      labelArrow: false,
      labelOffset: 38,
    },
    y: {
      domain,
      label: `change in ${effect_unit}`.trimEnd(),
      labelArrow: false,
      ticks: 5,
      tickFormat: (value: number) => (value === 0 ? "0" : signed(value)),
    },
    color: { type: "identity" },
    marks: [
      plot.rect(delta ? [delta] : [], {
        y1: (of: number) => Math.max(-of, domain[0]),
        y2: (of: number) => Math.min(of, domain[1]),
        fill: "var(--sunken)",
      }),
      plot.gridY({ ticks: 5 }),
      plot.ruleY([0], { stroke: "var(--line-strong)" }),
      plot.tickY(floors, {
        x: "x",
        y: "y",
        stroke: "var(--muted)",
        strokeDasharray: "4 3",
        inset: Math.max(0, bandwidth / 2 - 36),
      }),
      plot.ruleX(intervals, {
        x: "value",
        y1: ({ ci95 }: Marked) => ci95?.[0],
        y2: ({ ci95 }: Marked) => ci95?.[1],
        stroke: ({ mark }: Marked) => mark.colour,
        strokeWidth: 2,
      }),
      plot.tickY(intervals, { ...cap, y: ({ ci95 }: Marked) => ci95?.[0] }),
      plot.tickY(intervals, { ...cap, y: ({ ci95 }: Marked) => ci95?.[1] }),
      dots(true),
      dots(false),
      plot.text(
        points.filter(point => point.effect == null),
        { x: "value", y: 0, dy: -8, text: wordOf, fill: "var(--muted)" },
      ),
    ],
  };
}

const MARGIN_LEFT = 56;

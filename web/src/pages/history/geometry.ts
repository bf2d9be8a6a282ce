/** Geometry of the charts: scales, ticks, and which points to draw. Positions are in CSS pixels. */
import type { HistoryLevel, HistoryPoint, Verdict } from "@/api/types";
import { domainOf, type Mark } from "@/figures/marks";
import type { Range } from "./view";

/** Half of a level's band, in spreads: about 95 % of the points of an unchanged level are inside. */
export const BAND_SPREADS = 2;
/** Marks that a chart draws at most. */
export const MOST_MARKS = 1500;

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Scales {
  /** Middle of the place of a point; `x(index - 0.5)` is the border to the point before. */
  x(index: number): number;
  y(value: number): number;
  /** Width of the place of a point. */
  step: number;
  /** Index of the point at a position, inside the range. */
  indexAt(x: number): number;
}

/** Return the scales of a range of points in a box: points have equal distances. */
export function scalesOf({ start, end }: Range, [low, high]: readonly [number, number], box: Box): Scales {
  const step = (box.right - box.left) / Math.max(1, end - start);
  return {
    step,
    x: index => box.left + (index - start + 0.5) * step,
    y: value => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top),
    indexAt: x => Math.max(start, Math.min(end - 1, start + Math.floor((x - box.left) / step))),
  };
}

/** Return the domain of the values, deviations and bands in a range; `least` is half of the least band of a level. */
export function valueDomain(
  points: readonly HistoryPoint[],
  levels: readonly HistoryLevel[],
  range: Range,
  least: (level: HistoryLevel) => number = () => 0,
): [number, number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  const include = (value: number, around: number) => {
    low = Math.min(low, value - around);
    high = Math.max(high, value + around);
  };
  for (let index = range.start; index < range.end; index += 1) {
    const point = points[index];
    if (point) include(point.value, deviationOf(point) ?? 0);
  }
  for (const level of levelsIn(levels, range))
    include(level.middle, Math.max(BAND_SPREADS * level.spread, least(level)));
  return low <= high ? domainOf([low, high]) : [0, 1];
}

/** Return the levels that have points in a range. */
export function levelsIn(levels: readonly HistoryLevel[], { start, end }: Range): HistoryLevel[] {
  return levels.filter(level => level.end > start && level.start < end);
}

/** Standard deviation between the boots of a point; null for one boot, or if all are equal. */
export function deviationOf({ n, stddev }: Pick<HistoryPoint, "n" | "stddev">): number | null {
  return n > 1 && stddev !== null && stddev > 0 ? stddev : null;
}

/**
 * Return the indices of the points to draw, ascending: all if they are at most `most`, otherwise of each of equally long
 * parts of the range its lowest and highest value, and its most severe verdict.
 */
export function drawnPoints(
  points: readonly HistoryPoint[],
  { start, end }: Range,
  most = MOST_MARKS,
): number[] {
  if (end - start <= most) return Array.from({ length: Math.max(0, end - start) }, (_, at) => start + at);
  const parts = Math.floor(most / 3);
  const drawn: number[] = [];
  for (let part = 0; part < parts; part += 1) {
    const first = start + Math.floor((part * (end - start)) / parts);
    const last = start + Math.floor(((part + 1) * (end - start)) / parts);
    const kept = { low: first, high: first, severe: first };
    for (let index = first; index < last; index += 1) {
      const value = points[index]?.value ?? 0;
      if (value < (points[kept.low]?.value ?? 0)) kept.low = index;
      if (value > (points[kept.high]?.value ?? 0)) kept.high = index;
      if (severity(points[index]) > severity(points[kept.severe])) kept.severe = index;
    }
    drawn.push(...[...new Set([kept.low, kept.high, kept.severe])].sort((a, b) => a - b));
  }
  return drawn;
}

function severity(point: HistoryPoint | undefined): number {
  return point?.verdict === "regression" ? 2 : point?.verdict === "improvement" ? 1 : 0;
}

/** Return about `count` round numbers inside a domain, with the decimals that they need. */
export function ticksOf(
  [low, high]: readonly [number, number],
  count: number,
): { at: number[]; decimals: number } {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find(each => each * power >= rough) ?? 10) * power;
  const first = Math.ceil(low / step);
  const last = Math.floor(high / step);
  return {
    at: Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * step),
    decimals: Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))),
  };
}

/** Return at most `most` evenly spaced indices of a range, the first and the last among them. */
export function spacedIndices({ start, end }: Range, most: number): number[] {
  const size = end - start;
  if (size <= 0) return [];
  const count = Math.max(1, Math.min(size, most));
  if (count === 1) return [end - 1];
  return Array.from({ length: count }, (_, at) => start + Math.round((at * (size - 1)) / (count - 1)));
}

/** Return the radius of marks that have `step` pixels each. */
export function radiusOf(step: number): number {
  return Math.max(1.75, Math.min(4.5, step * 0.36));
}

/** Return the path of a mark: triangle, square or circle, with about the same area. */
export function markPath({ symbol, rotate }: Mark, x: number, y: number, r: number): string {
  const px = (value: number) => Math.round(value * 100) / 100;
  if (symbol === "square")
    return `M${px(x - 0.9 * r)} ${px(y - 0.9 * r)}h${px(1.8 * r)}v${px(1.8 * r)}h${px(-1.8 * r)}z`;
  if (symbol === "triangle") {
    const up = rotate === 0 ? -1 : 1;
    return `M${px(x)} ${px(y + up * 1.35 * r)}L${px(x + 1.2 * r)} ${px(y - up * 0.8 * r)}H${px(x - 1.2 * r)}z`;
  }
  return `M${px(x - r)} ${px(y)}a${px(r)} ${px(r)} 0 1 0 ${px(2 * r)} 0a${px(r)} ${px(r)} 0 1 0 ${px(-2 * r)} 0z`;
}

/** Return a line through points, interrupted where the environment has changed. */
export function linePath(
  points: readonly HistoryPoint[],
  drawn: readonly number[],
  { x, y }: Scales,
): string {
  const cuts = cutsIn(points);
  let path = "";
  let passed = 0;
  drawn.forEach((index, at) => {
    const begun = passed;
    while ((cuts[passed] ?? Number.POSITIVE_INFINITY) <= index) passed += 1;
    const command = at === 0 || passed > begun ? "M" : "L";
    path += `${command}${x(index).toFixed(1)} ${y(points[index]?.value ?? 0).toFixed(1)}`;
  });
  return path;
}

/** Return the indices of the points before which the environment has changed. */
export function cutsIn(points: readonly HistoryPoint[]): number[] {
  return points.flatMap((point, index) => (point.cut && index > 0 ? [index] : []));
}

/** Verdicts that have a mark of their own, in the order of the legend; null stands for all others. */
export const MARKED: readonly (Verdict | null)[] = [
  "improvement",
  "regression",
  "equivalent",
  "below_threshold",
  null,
];

export function markedAs(verdict: Verdict | null): Verdict | null {
  return MARKED.includes(verdict) ? verdict : null;
}

/** Texts of points. */
import type { HistoryLine, HistoryPoint } from "@/api/types";
import { count, effect, interval, number, spread } from "@/lib/numbers";
import { absolute } from "@/lib/time";
import { humanize, oneLine } from "@/lib/words";
import { headText } from "./labels";

type Of = Pick<HistoryLine, "ref" | "unit" | "scale" | "effect_unit">;

/** Value with its deviation and unit: `34.50 ±0.21 locks`. */
export function valueText({ value, stddev, n }: HistoryPoint, { unit }: Pick<Of, "unit">): string {
  return `${spread({ mean: value, stddev: n > 1 ? stddev : null })} ${unit}`.trimEnd();
}

/** Where the value is from: `4 boots`. */
export function bootsText({ n }: Pick<HistoryPoint, "n">): string {
  return n > 0 ? count(n, "boot") : "not booted: the kernel is byte-identical to that of the head before";
}

/** Change from the head before: `+17.6 % [+16.1, +19.0]`; empty if there is none. */
export function changeText(
  point: HistoryPoint,
  { scale, effect_unit }: Pick<Of, "scale" | "effect_unit">,
): string {
  return `${effect({ effect: point.effect, scale, effect_unit })} ${interval(point.ci95)}`.trim();
}

/** A point in a sentence, for the line above the chart and for screen readers. */
export function pointText(point: HistoryPoint, of: Of): string {
  const change = changeText(point, of);
  const parts = [
    headText(point.head, of),
    absolute(new Date(point.at)).slice(0, 16),
    `${valueText(point, of)} (${bootsText(point)})`,
    ...(change ? [`${change} from the head before`] : []),
    ...(point.verdict ? [humanize(point.verdict)] : []),
    ...(point.cut ? [`environment changed: ${oneLine(point.cut)}`] : []),
  ];
  return parts.join(" · ");
}

/** Middle and spread of a level: `34.00 ±0.12`. */
export function levelText(of: Pick<HistoryLine, "level" | "unit">): string {
  if (!of.level) return "";
  const { middle, spread: deviation } = of.level;
  const text = deviation > 0 ? spread({ mean: middle, stddev: deviation }) : number(middle);
  return `${text} ${of.unit}`.trimEnd();
}

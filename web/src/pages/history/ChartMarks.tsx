/** The layers of a chart. Each is drawn again only if its own data change, not while the pointer moves. */
import { memo, useMemo } from "react";
import type { HistoryLevel, HistoryPoint, HistoryShift } from "@/api/types";
import { markOf } from "@/figures/marks";
import { fixed, MINUS } from "@/lib/numbers";
import { date } from "@/lib/time";
import classes from "./chart.module.css";
import { type Floor, floorBand } from "./floor";
import {
  BAND_SPREADS,
  type Box,
  cutsIn,
  deviationOf,
  drawnPoints,
  levelsIn,
  linePath,
  MARKED,
  markedAs,
  markPath,
  radiusOf,
  type Scales,
  spacedIndices,
  ticksOf,
} from "./geometry";
import { changeOf } from "./labels";
import type { Range } from "./view";

const Y_TICK_PX = 48;
/** Room for an abbreviated commit; the first and the last label are inside of the axis. */
const X_TICK_PX = 140;

interface AxesProps {
  points: readonly HistoryPoint[];
  /** Names of the heads, one for each point. */
  names: readonly string[];
  range: Range;
  domain: readonly [number, number];
  scales: Scales;
  box: Box;
  label: string;
}

/** Grid and labels: values at the left, heads with their days below. */
export const Axes = memo(function Axes({ points, names, range, domain, scales, box, label }: AxesProps) {
  const { at, decimals } = ticksOf(domain, Math.max(2, (box.bottom - box.top) / Y_TICK_PX));
  const heads = spacedIndices(range, Math.max(2, Math.floor((box.right - box.left) / X_TICK_PX)));
  return (
    <g>
      <text className={classes.label} x={0} y={12}>
        {label}
      </text>
      {at.map(value => (
        <g key={value}>
          <line
            className={classes.grid}
            x1={box.left}
            x2={box.right}
            y1={scales.y(value)}
            y2={scales.y(value)}
          />
          <text className={classes.value} x={box.left - 6} y={scales.y(value) + 4}>
            {fixed(value, decimals).replace(/^-/, MINUS)}
          </text>
        </g>
      ))}
      <line className={classes.base} x1={box.left} x2={box.right} y1={box.bottom} y2={box.bottom} />
      {heads.map((index, place) => {
        const first = place === 0 && heads.length > 1;
        const last = place === heads.length - 1 && heads.length > 1;
        const x = first ? box.left : last ? box.right : scales.x(index);
        return (
          <g key={index} data-anchor={first ? "start" : last ? "end" : "middle"} className={classes.tick}>
            <line x1={scales.x(index)} x2={scales.x(index)} y1={box.bottom} y2={box.bottom + 4} />
            <text x={x} y={box.bottom + 18}>
              {names[index]}
            </text>
            <text className={classes.day} x={x} y={box.bottom + 33}>
              {date(new Date(points[index]?.at ?? 0))}
            </text>
          </g>
        );
      })}
    </g>
  );
});

interface LevelsProps {
  levels: readonly HistoryLevel[];
  floor: Floor | null;
  range: Range;
  scales: Scales;
}

/** A line for each level, in a band of two spreads on both sides; dotted: two noise floors on both sides. */
export const Levels = memo(function Levels({ levels, floor, range, scales }: LevelsProps) {
  return levelsIn(levels, range).map(({ start, end, middle, spread }) => {
    const x1 = scales.x(Math.max(start, range.start) - 0.5);
    const x2 = scales.x(Math.min(end, range.end) - 0.5);
    const top = scales.y(middle + BAND_SPREADS * spread);
    const noise = floor ? floorBand(floor, middle) : 0;
    return (
      <g key={start}>
        {spread > 0 && (
          <rect
            className={classes.band}
            x={x1}
            y={top}
            width={Math.max(0, x2 - x1)}
            height={scales.y(middle - BAND_SPREADS * spread) - top}
          />
        )}
        {noise > 0 && (
          <path
            className={classes.floor}
            data-floor={noise}
            d={[middle - noise, middle + noise].map(value => `M${x1} ${scales.y(value)}H${x2}`).join("")}
          />
        )}
        <line className={classes.level} x1={x1} x2={x2} y1={scales.y(middle)} y2={scales.y(middle)} />
      </g>
    );
  });
});

interface PointsProps {
  points: readonly HistoryPoint[];
  range: Range;
  scales: Scales;
}

/** The points by verdict, one path for each shape, with their deviations and a line through them. */
export const Points = memo(function Points({ points, range, scales }: PointsProps) {
  const { drawn, line, whiskers, marks } = useMemo(() => {
    const indices = drawnPoints(points, range);
    const radius = radiusOf(scales.step);
    const paths = new Map(MARKED.map(verdict => [verdict, ""]));
    let deviations = "";
    for (const index of indices) {
      const point = points[index];
      if (!point) continue;
      const x = scales.x(index);
      const verdict = markedAs(point.verdict);
      const mark = markOf(verdict);
      paths.set(verdict, (paths.get(verdict) ?? "") + markPath(mark, x, scales.y(point.value), radius));
      const deviation = deviationOf(point);
      if (deviation !== null)
        deviations += `M${x.toFixed(1)} ${scales.y(point.value - deviation).toFixed(1)}V${scales.y(point.value + deviation).toFixed(1)}`;
    }
    return {
      drawn: indices.length,
      line: linePath(points, indices, scales),
      whiskers: deviations,
      marks: paths,
    };
  }, [points, range, scales]);
  return (
    <g data-drawn={drawn}>
      <path className={classes.through} d={line} />
      <path className={classes.whiskers} d={whiskers} />
      {[...marks].map(([verdict, path]) => {
        const { colour, filled } = markOf(verdict);
        return (
          path && (
            <path
              key={verdict ?? "other"}
              data-verdict={verdict ?? "other"}
              d={path}
              fill={filled ? colour : "var(--paper)"}
              stroke={colour}
              strokeWidth={1.5}
            />
          )
        );
      })}
    </g>
  );
});

interface EventsProps {
  points: readonly HistoryPoint[];
  shifts: readonly HistoryShift[];
  /** Index of the first point after each shift, in the order of `shifts`; -1 if it is not on the line. */
  places: readonly number[];
  range: Range;
  scales: Scales;
  box: Box;
}

/** Where the environment has changed (dashed), and where the level has shifted (with a flag). */
export const Events = memo(function Events({ points, shifts, places, range, scales, box }: EventsProps) {
  const inside = (index: number) => index >= range.start && index < range.end;
  return (
    <g>
      {cutsIn(points)
        .filter(inside)
        .map(index => {
          const x = scales.x(index - 0.5);
          return (
            <g key={index} data-cut={points[index]?.head.id}>
              <title>{`Environment changed: ${points[index]?.cut}`}</title>
              <path className={classes.hit} d={`M${x} ${box.top - 10}V${box.bottom}`} />
              <path className={classes.dashes} d={`M${x} ${box.top - 6}V${box.bottom}`} />
              <path className={classes.diamond} d={`M${x} ${box.top - 14}l5 5l-5 5l-5 -5z`} />
            </g>
          );
        })}
      {shifts.map((shift, order) => {
        const index = places[order] ?? -1;
        if (!inside(index)) return null;
        const x = scales.x(index - 0.5);
        const { sign, word, tone } = changeOf(shift);
        return (
          <g key={shift.id} className={classes.shift} data-tone={tone} data-shift={shift.id}>
            <title>{`Shift ${shift.id}: ${word}, ${shift.state.replaceAll("_", " ")}`}</title>
            <path className={classes.pole} d={`M${x} ${box.top - 16}V${box.bottom}`} />
            <rect x={x - 9} y={box.top - 22} width={18} height={15} rx={3} />
            <text x={x} y={box.top - 10}>
              {sign}
            </text>
          </g>
        );
      })}
    </g>
  );
});

/** A line as a small chart without controls, over heads that it may share with other charts. */
import { memo, useMemo } from "react";
import type { HistoryLineData } from "@/api/types";
import { markOf } from "@/figures/marks";
import { useWidth } from "@/figures/useWidth";
import classes from "./chart.module.css";
import { type Box, drawnPoints, linePath, markPath, type Scales, valueDomain } from "./geometry";
import { changeOf } from "./labels";
import { lowerBound, type Range } from "./view";

interface MiniChartProps {
  line: HistoryLineData;
  /** Ids of the heads on the axis, ascending. */
  heads: readonly number[];
  /** Id of the selected head. */
  at?: number | null;
  height?: number;
}

/** More marks could not be told apart. */
const MOST_MARKS = 300;
const DIFFERENT = new Set(["regression", "improvement"]);

export const MiniChart = memo(function MiniChart({ line, heads, at = null, height = 84 }: MiniChartProps) {
  const [container, width] = useWidth<HTMLDivElement>();
  const { series, levels, shifts } = line;
  const drawing = useMemo(() => {
    if (width === 0 || heads.length === 0) return null;
    const ids = series.map(point => point.head.id);
    const range: Range = {
      start: lowerBound(ids, heads[0] as number),
      end: lowerBound(ids, (heads.at(-1) as number) + 1),
    };
    const box: Box = { left: 2, right: width - 2, top: 8, bottom: height - 8 };
    const [low, high] = valueDomain(series, levels, range);
    const step = (box.right - box.left) / heads.length;
    const places = ids.map(id => lowerBound(heads, id));
    const scales: Scales = {
      step,
      x: index => {
        const whole = Math.ceil(index);
        // Before a point, also if the one before it is not on this line.
        return box.left + ((places[whole] ?? places.length) + 0.5 - (whole - index)) * step;
      },
      y: value => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top),
      indexAt: () => 0,
    };
    const drawn = drawnPoints(series, range, MOST_MARKS);
    return { ids, range, box, scales, drawn };
  }, [series, levels, heads, width, height]);
  return (
    <div ref={container} className={classes.mini} style={{ minHeight: height }}>
      {drawing && (
        <svg width={width} height={height} aria-hidden="true">
          {levels
            .filter(level => level.end > drawing.range.start && level.start < drawing.range.end)
            .map(level => (
              <line
                key={level.start}
                className={classes.tinyLevel}
                x1={drawing.scales.x(Math.max(level.start, drawing.range.start))}
                x2={drawing.scales.x(Math.min(level.end, drawing.range.end) - 1)}
                y1={drawing.scales.y(level.middle)}
                y2={drawing.scales.y(level.middle)}
              />
            ))}
          <path
            className={classes.tiny}
            d={linePath(series, drawing.drawn, drawing.scales)}
            strokeOpacity={0.6}
          />
          <path
            className={classes.tinyDots}
            d={drawing.drawn
              .map(index =>
                markPath(
                  markOf(null),
                  drawing.scales.x(index),
                  drawing.scales.y(series[index]?.value ?? 0),
                  1.5,
                ),
              )
              .join("")}
          />
          {drawing.drawn
            .filter(index => DIFFERENT.has(series[index]?.verdict ?? ""))
            .map(index => {
              const mark = markOf(series[index]?.verdict);
              const y = drawing.scales.y(series[index]?.value ?? 0);
              return (
                <path key={index} d={markPath(mark, drawing.scales.x(index), y, 4)} fill={mark.colour} />
              );
            })}
          {shifts.map(shift => {
            const index = lowerBound(drawing.ids, shift.after.id);
            if (index < drawing.range.start || index >= drawing.range.end) return null;
            const x = drawing.scales.x(index - 0.5);
            return (
              <g key={shift.id} className={classes.shift} data-tone={changeOf(shift).tone}>
                <path className={classes.pole} d={`M${x} 0V${height}`} />
              </g>
            );
          })}
          {at !== null && heads.includes(at) && (
            <g className={classes.selected}>
              <line
                x1={drawing.box.left + (lowerBound(heads, at) + 0.5) * drawing.scales.step}
                x2={drawing.box.left + (lowerBound(heads, at) + 0.5) * drawing.scales.step}
                y1={0}
                y2={height}
              />
            </g>
          )}
        </svg>
      )}
    </div>
  );
});

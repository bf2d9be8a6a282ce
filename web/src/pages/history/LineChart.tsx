/** A line as a chart that is read and zoomed by pointer and by keyboard. */
import { type KeyboardEvent, type PointerEvent, useId, useMemo, useState } from "react";
import type { HistoryLineData } from "@/api/types";
import { useWidth } from "@/figures/useWidth";
import { metricName } from "@/lib/numbers";
import { Axes, Events, Levels, Points } from "./ChartMarks";
import classes from "./chart.module.css";
import { type Floor, floorBand } from "./floor";
import { type Box, scalesOf, valueDomain } from "./geometry";
import { headText } from "./labels";
import { pointText } from "./points";
import { pressed, type Range, type Shown, widened } from "./view";

const HEIGHT = 360;
const MARGIN = { top: 50, right: 10, bottom: 40, left: 58 };
/** A drag of fewer pixels is a click. */
const DRAG_PX = 6;

interface LineChartProps {
  line: HistoryLineData;
  floor: Floor | null;
  shown: Shown;
  /** Index of the first point after each shift; -1 if it is not on the line. */
  places: readonly number[];
  onShown(shown: Shown): void;
}

export function LineChart({ line, floor, shown, places, onShown }: LineChartProps) {
  const id = useId();
  const [container, width] = useWidth<HTMLDivElement>();
  const [hovered, setHovered] = useState<number | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const { series, levels, shifts } = line;
  const { at } = shown;
  const { start, end } = shown.range;
  const range = useMemo((): Range => ({ start, end }), [start, end]);
  const names = useMemo(() => series.map(({ head }) => headText(head, line)), [series, line]);
  const domain = useMemo(
    () => valueDomain(series, levels, range, level => (floor ? floorBand(floor, level.middle) : 0)),
    [series, levels, range, floor],
  );
  const box = useMemo(
    (): Box => ({
      left: MARGIN.left,
      right: width - MARGIN.right,
      top: MARGIN.top,
      bottom: HEIGHT - MARGIN.bottom,
    }),
    [width],
  );
  const scales = useMemo(() => scalesOf(range, domain, box), [range, domain, box]);

  const place = (event: PointerEvent<HTMLElement>) =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = pressed(event.key, shown, series.length);
    if (!next) return;
    event.preventDefault();
    onShown(next);
  };
  const onPointerDown = (event: PointerEvent<HTMLElement>) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({ from: place(event), to: place(event) });
  };
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    setHovered(scales.indexAt(place(event)));
    if (drag) setDrag({ ...drag, to: place(event) });
  };
  const onPointerUp = (event: PointerEvent<HTMLElement>) => {
    if (!drag) return;
    setDrag(null);
    const ends = [scales.indexAt(drag.from), scales.indexAt(place(event))].sort((a, b) => a - b);
    const [first, last] = ends as [number, number];
    if (Math.abs(place(event) - drag.from) < DRAG_PX) onShown({ range, at: last });
    else onShown({ range: widened({ start: first, end: last + 1 }, series.length), at });
  };
  const visible = (index: number | null): index is number => index !== null && index >= start && index < end;
  const read = visible(hovered) ? hovered : at;
  const reading = read === null ? undefined : series[read];
  const selected = at === null ? undefined : series[at];

  return (
    <div className={classes.chart}>
      <p className={classes.reading} aria-hidden="true">
        {reading ? pointText(reading, line) : "Point at a head, or press the arrow keys, to read its values."}
      </p>
      <div
        ref={container}
        className={classes.canvas}
        role="slider"
        tabIndex={0}
        aria-label={`Heads of ${metricName(line.metric)} on ${line.device_type}`}
        aria-describedby={`${id}-keys`}
        aria-orientation="horizontal"
        aria-valuemin={1}
        aria-valuemax={Math.max(1, series.length)}
        aria-valuenow={(at ?? end - 1) + 1}
        aria-valuetext={selected ? pointText(selected, line) : `none of ${series.length} heads selected`}
        onKeyDown={onKeyDown}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setHovered(null)}
        data-from={start}
        data-to={end}
        style={{ minHeight: HEIGHT }}
      >
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true">
            <Axes
              points={series}
              names={names}
              range={range}
              domain={domain}
              scales={scales}
              box={box}
              label={metricName(line.metric) + (line.unit && ` (${line.unit})`)}
            />
            <Levels levels={levels} floor={floor} range={range} scales={scales} />
            <Points points={series} range={range} scales={scales} />
            <Events points={series} shifts={shifts} places={places} range={range} scales={scales} box={box} />
            {visible(at) && (
              <g className={classes.selected}>
                <line x1={scales.x(at)} x2={scales.x(at)} y1={box.top} y2={box.bottom} />
                <circle cx={scales.x(at)} cy={scales.y(series[at]?.value ?? 0)} r={8} />
              </g>
            )}
            {visible(hovered) && hovered !== at && (
              <circle
                className={classes.hovered}
                cx={scales.x(hovered)}
                cy={scales.y(series[hovered]?.value ?? 0)}
                r={7}
              />
            )}
            {drag && Math.abs(drag.to - drag.from) >= DRAG_PX && (
              <rect
                className={classes.brush}
                x={Math.max(box.left, Math.min(drag.from, drag.to))}
                y={box.top}
                width={Math.max(
                  0,
                  Math.min(box.right, Math.max(drag.from, drag.to)) -
                    Math.max(box.left, Math.min(drag.from, drag.to)),
                )}
                height={box.bottom - box.top}
              />
            )}
          </svg>
        )}
      </div>
      <p className={classes.keys} id={`${id}-keys`}>
        Keys: <kbd>←</kbd> <kbd>→</kbd> select a head, <kbd>Home</kbd> <kbd>End</kbd> the first and last,{" "}
        <kbd>+</kbd> <kbd>−</kbd> zoom, <kbd>Esc</kbd> shows all. Drag over the chart to zoom.
      </p>
    </div>
  );
}

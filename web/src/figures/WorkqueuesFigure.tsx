/** Activity of the busiest workqueues over time: a panel for each workqueue, a line for each arm. */
import type * as Plot from "@observablehq/plot";
import { useCallback } from "react";
import type { Arm, WorkqueueCell } from "@/api/types";
import { number } from "@/lib/numbers";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import classes from "./figures.module.css";
import { LazyPlot } from "./LazyPlot";

interface WorkqueuesFigureProps {
  title: string;
  cell: WorkqueueCell;
  emulated: boolean;
}

type Series = WorkqueueCell["series"][number];

export function WorkqueuesFigure({ title, cell, emulated }: WorkqueuesFigureProps) {
  const draw = useCallback((width: number, plot: typeof Plot) => panels(cell, width, plot), [cell]);
  const arms = [...new Set(cell.series.map(each => each.arm))];
  return (
    <Figure
      title={title}
      description={
        <>
          Work items completed per second by the busiest workqueues in one {cell.phase} repetition, sampled
          once a second from {cell.source === "stats" ? "the kernel's counters" : "workqueue tracepoints"}.
          Each panel has its own scale from zero.
          {emulated && " On an emulated device, counts are evidence of the mechanism; times are not."}
          {cell.notes.map(note => ` ${note.charAt(0).toUpperCase()}${note.slice(1)}.`)}
        </>
      }
      table={
        <DataTable
          caption={title}
          captionHidden
          columns={COLUMNS}
          rows={cell.series}
          rowKey={row => `${row.workqueue} ${row.arm}`}
        />
      }
    >
      <div className={classes.keys}>
        {arms.map(arm => (
          <span key={arm} className={classes.key}>
            <svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true">
              <path d="M0 6H24" strokeWidth="2" stroke={STROKE[arm]} strokeDasharray={DASH[arm]} />
            </svg>
            {arm}
          </span>
        ))}
      </div>
      <LazyPlot draw={draw} height={heightOf(cell)} />
    </Figure>
  );
}

const STROKE: Partial<Record<Arm, string>> = { baseline: "var(--arm-a)", candidate: "var(--arm-b)" };
/** The dash pattern repeats the meaning of the colour. */
const DASH: Partial<Record<Arm, string | undefined>> = { baseline: undefined, candidate: "6 3" };

const COUNTERS = [
  ["started", "started"],
  ["completed", "completed"],
  ["cpu_us", "CPU (µs)"],
  ["cpu_intensive", "CPU-intensive"],
  ["cm_wakeups", "managed wakeups"],
  ["repatriated", "repatriated"],
  ["mayday", "mayday"],
  ["rescued", "rescued"],
] as const;

const COLUMNS: Column<Series>[] = [
  { id: "workqueue", header: "workqueue", value: row => row.workqueue, rowHeader: true },
  { id: "arm", header: "arm", value: row => row.arm },
  ...COUNTERS.map(
    ([id, header]): Column<Series> => ({
      id,
      header,
      numeric: true,
      value: row => row.totals[id],
      text: row => (row.totals[id] === undefined ? "not measured" : number(row.totals[id])),
    }),
  ),
  { id: "in_flight_max", header: "most in flight", numeric: true, value: row => row.in_flight_max },
];

const PANEL = 96;
const AROUND = 48;

function heightOf(cell: WorkqueueCell): number {
  return new Set(cell.series.map(each => each.workqueue)).size * PANEL + AROUND;
}

interface Place {
  workqueue: string;
  arm: Arm;
  seconds: number;
  /** Share of the panel's highest rate: each panel has its own scale. */
  share: number;
  rate: number;
}

/** Return the points of all panels. */
export function placesOf(cell: WorkqueueCell): Place[] {
  const peaks = new Map<string, number>();
  for (const { workqueue, points } of cell.series)
    peaks.set(workqueue, Math.max(peaks.get(workqueue) ?? 0, ...points.map(([, rate]) => rate)));
  return cell.series.flatMap(({ workqueue, arm, points }) => {
    const peak = peaks.get(workqueue) || 1;
    const [first] = points;
    // A single sample is the rate over all of the time before it.
    const drawn = points.length === 1 && first ? [[0, first[1]] as const, first] : points;
    return drawn.map(([seconds, rate]) => ({ workqueue, arm, seconds, rate, share: rate / peak }));
  });
}

/** Return the plot options. */
export function panels(cell: WorkqueueCell, width: number, plot: typeof Plot): Plot.PlotOptions {
  const places = placesOf(cell);
  const names = [...new Set(cell.series.map(each => each.workqueue))];
  const peak = (name: string) =>
    Math.max(0, ...places.filter(each => each.workqueue === name).map(each => each.rate));
  return {
    height: heightOf(cell),
    marginLeft: 8,
    marginRight: 16,
    marginTop: 8,
    marginBottom: 40,
    x: {
      label: "seconds",
      labelAnchor: "center",
      labelArrow: false,
      labelOffset: 34,
      domain: [0, Math.max(1, ...places.map(each => each.seconds))],
      ticks: Math.max(3, Math.floor(width / 110)),
    },
    y: { domain: [0, 1.45], axis: null },
    fy: { domain: names, axis: null, label: null },
    color: { type: "identity" },
    marks: [
      plot.ruleY([0], { stroke: "var(--line-strong)" }),
      plot.text(names, {
        fy: name => name,
        text: name => `${name}: up to ${number(peak(name))} per second`,
        frameAnchor: "top-left",
        textAnchor: "start",
        fill: "var(--ink)",
      }),
      ...(["baseline", "candidate"] as const).map(arm =>
        plot.line(
          places.filter(each => each.arm === arm),
          {
            fy: "workqueue",
            x: "seconds",
            y: "share",
            stroke: STROKE[arm],
            strokeWidth: 1.75,
            ...(DASH[arm] ? { strokeDasharray: DASH[arm] } : {}),
          },
        ),
      ),
    ],
  };
}

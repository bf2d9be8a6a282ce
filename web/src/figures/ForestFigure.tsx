/** Forest plot: effects with their 95 % intervals. Only effects with evidence are drawn. */
import type * as Plot from "@observablehq/plot";
import { type ReactNode, useCallback, useMemo } from "react";
import type { Comparison } from "@/api/types";
import { change, effect, intervalOf } from "@/lib/numbers";
import { VERDICTS } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { LazyPlot } from "./LazyPlot";
import { domainOf, type Mark, markOf } from "./marks";

export interface ForestRow {
  key: string;
  /** Label of the row: a device, a version. */
  name: string;
  of: Comparison;
}

interface ForestFigureProps {
  title: string;
  /** Comparisons of one metric; those without evidence or effect are listed below the figure. */
  rows: readonly ForestRow[];
  /** Header of the label column: `topology`. */
  names: string;
  description?: ReactNode;
}

const TEXT_HALO = { stroke: "var(--paper)", strokeWidth: 4 } as const;
const ROW = 42;
const AXIS = 44;

export function ForestFigure({ title, rows, names, description }: ForestFigureProps) {
  const drawn = useMemo(() => rows.filter(isDrawn), [rows]);
  const draw = useCallback((width: number, plot: typeof Plot) => forest(drawn, width, plot), [drawn]);
  const omitted = rows.filter(row => !isDrawn(row));
  const columns = useMemo(() => columnsOf(names), [names]);
  const first = drawn[0]?.of;
  return (
    <Figure
      title={title}
      description={
        <>
          {first ? (
            <>
              Mark: estimate; line: 95 % interval; vertical line: no difference
              {first.delta ? "; grey: effects smaller than the threshold" : ""}. {describeDirection(first)}
            </>
          ) : (
            "No topology has an effect to draw."
          )}
          {description && <> {description}</>}
          {omitted.length > 0 && <> Not drawn: {omitted.map(omissionReason).join("; ")}.</>}
        </>
      }
      table={
        <DataTable caption={title} captionHidden columns={columns} rows={rows} rowKey={row => row.key} />
      }
    >
      {first && <LazyPlot draw={draw} height={drawn.length * ROW + AXIS} />}
    </Figure>
  );
}

/** Return true if the comparison has evidence and an effect. */
export function isDrawn({ of }: ForestRow): boolean {
  return of.evidence !== "none" && of.effect != null;
}

function omissionReason({ name, of }: ForestRow): string {
  if (of.evidence === "none") return `${name} (no evidence)`;
  return `${name} (${of.verdict === null ? "no effect" : VERDICTS[of.verdict].word})`;
}

function describeDirection(of: Comparison): string {
  if (of.direction === "none") return "Neither direction is better.";
  return of.direction === "higher_is_better"
    ? "Higher is better: to the right."
    : "Lower is better: to the left.";
}

function columnsOf(names: string): Column<ForestRow>[] {
  return [
    { id: "name", header: names, value: row => row.name, rowHeader: true },
    {
      id: "effect",
      header: "change",
      numeric: true,
      value: ({ of }) => of.effect,
      text: ({ of }) => effect(of),
    },
    {
      id: "interval",
      header: "95 % interval",
      numeric: true,
      value: ({ of }) => of.ci95?.[0],
      text: ({ of }) => intervalText(of),
    },
    { id: "n", header: "n", hint: "boots", numeric: true, value: ({ of }) => of.candidate?.n },
    {
      id: "verdict",
      header: "verdict",
      value: ({ of }) => of.verdict,
      text: ({ of }) => (of.verdict === null ? "" : VERDICTS[of.verdict].word),
      cell: ({ of }) => <VerdictBadge verdict={of.verdict} />,
    },
  ];
}

/** Format the interval, or the reason why there is none. */
function intervalText(of: Comparison): string {
  if (of.effect == null) return "";
  return intervalOf(of) || "no interval";
}

/** Return the plot options. Labels are above their lines, so that long labels need no margin. */
export function forest(rows: readonly ForestRow[], width: number, plot: typeof Plot): Plot.PlotOptions {
  const first = rows[0]?.of;
  const ends = rows.flatMap(({ of }) => [
    of.effect ?? 0,
    ...(of.ci95 ?? []),
    of.delta ?? 0,
    -(of.delta ?? 0),
  ]);
  const narrow = width < 420;
  const y = { y: "key" } as const;
  const label = ({ of }: ForestRow) =>
    [
      effect(of),
      narrow ? "" : intervalText(of),
      of.verdict === null ? "no verdict" : VERDICTS[of.verdict].word,
    ]
      .filter(Boolean)
      .join("  ");
  type Marked = ForestRow & { mark: Mark };
  const marks: Marked[] = rows.map(row => ({ ...row, mark: markOf(row.of.verdict) }));
  const dots = (filled: boolean) =>
    plot.dot(
      marks.filter(({ mark }) => mark.filled === filled),
      {
        ...y,
        x: (row: Marked) => row.of.effect,
        dy: 8,
        r: 5.5,
        symbol: (row: Marked) => row.mark.symbol,
        rotate: (row: Marked) => row.mark.rotate,
        fill: filled ? (row: Marked) => row.mark.colour : "var(--paper)",
        stroke: (row: Marked) => row.mark.colour,
        strokeWidth: 2,
        title: (row: Marked) => `${row.name}: ${label(row)}`,
      },
    );
  return {
    height: rows.length * ROW + AXIS,
    marginLeft: 14,
    marginRight: 18,
    marginTop: 2,
    marginBottom: AXIS - 2,
    x: {
      domain: domainOf([0, ...ends]),
      label: first ? `change in ${first.effect_unit}`.trimEnd() : null,
      labelAnchor: "center",
      labelArrow: false,
      labelOffset: 38,
      // Counts are integers, but ticks may lie between two integers.
      tickFormat: (value: number) =>
        value === 0
          ? "0"
          : change({
              ...(first as Comparison),
              exact: Number.isInteger(value) && (first?.exact ?? false),
              effect: value,
            }),
      ticks: Math.max(3, Math.min(9, Math.floor(width / 90))),
    },
    y: { type: "band", domain: rows.map(row => row.key), axis: null, padding: 0 },
    color: { type: "identity" },
    marks: [
      plot.barX(
        rows.filter(({ of }) => of.delta),
        {
          ...y,
          x1: ({ of }: ForestRow) => -(of.delta ?? 0),
          x2: ({ of }: ForestRow) => of.delta ?? 0,
          insetTop: 22,
          insetBottom: 6,
          fill: "var(--sunken)",
        },
      ),
      // Below the row's text, not across it.
      plot.tickX(rows, { ...y, x: 0, insetTop: 20, stroke: "var(--line-strong)" }),
      plot.ruleY(
        rows.filter(({ of }) => of.ci95 != null),
        {
          ...y,
          x1: ({ of }: ForestRow) => of.ci95?.[0],
          x2: ({ of }: ForestRow) => of.ci95?.[1],
          dy: 8,
          stroke: ({ of }: ForestRow) => markOf(of.verdict).colour,
          strokeWidth: 2,
        },
      ),
      dots(true),
      dots(false),
      plot.text(rows, {
        ...y,
        text: row => row.name,
        frameAnchor: "left",
        textAnchor: "start",
        dy: -9,
        ...TEXT_HALO,
        fill: "var(--ink)",
        fontWeight: 600,
        lineWidth: (width * 0.42) / 12,
        textOverflow: "ellipsis",
      }),
      plot.text(rows, {
        ...y,
        text: label,
        frameAnchor: "right",
        textAnchor: "end",
        dy: -9,
        ...TEXT_HALO,
        fill: "var(--muted)",
      }),
    ],
  };
}

/** Flame graph of instructions or cache line transfers, coloured by the change between the kernels. */
import { useMemo } from "react";
import type { InstrumentCell } from "@/api/types";
import { basis, functionName, OTHER, perOperation, subsystemOf } from "@/lib/instrumented";
import { signed } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import classes from "./FlameFigure.module.css";
import { boxesOf, countsOf, fittingText, type Quantity, toneOf } from "./flame";
import { useWidth } from "./useWidth";

const ROW = 22;
const DEPTH = 4;
const CHARACTER = 6.6;
/** Width in CSS pixels before the figure is measured, and in print. */
const WIDTH = 720;
/** Narrower boxes, in CSS pixels, are not drawn. */
const LEAST = 0.8;

const NAMES: Record<Quantity, string> = { instructions: "instructions", transfers: "cache line transfers" };

export function FlameFigure({
  title,
  cell,
  quantity,
}: {
  title: string;
  cell: InstrumentCell;
  quantity: Quantity;
}) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const boxes = useMemo(() => boxesOf(cell, quantity), [cell, quantity]);
  const columns = useMemo(() => columnsOf(cell, quantity), [cell, quantity]);
  const both = Object.keys(cell.totals).length > 1;
  const drawn = width || WIDTH;
  return (
    <Figure
      title={title}
      description={
        <>
          {both && <Key />} Width is the larger count of both kernels ({basis(cell)}). Places are subsystem,
          file and function: the emulator records no call stacks.
          {both &&
            " A box has the colour of its change from the baseline, a function only if its count changed in the same direction under every seed."}
          {cell.functions.some(of => of.name === OTHER) &&
            " Functions without a box of their own are summed by file, those of the smallest files by subsystem."}
        </>
      }
      table={
        <DataTable
          caption={title}
          captionHidden
          columns={columns}
          rows={cell.functions}
          rowKey={of => `${of.subsystem} ${of.file} ${of.name}`}
        />
      }
    >
      <div ref={ref}>
        <svg aria-hidden="true" width={drawn} height={ROW * DEPTH} viewBox={`0 0 ${drawn} ${ROW * DEPTH}`}>
          {boxes.map(box => {
            const size = box.width * drawn;
            if (size < LEAST) return null;
            const tone = both ? toneOf(box.change) : "same";
            const change =
              tone === "same" || box.before === 0 ? "" : `${signed(100 * (box.after / box.before - 1))} %`;
            const text = fittingText(oneLine(box.name), change, Math.floor((size - 6) / CHARACTER));
            const counts = both
              ? `${perOperation(box.before)} → ${perOperation(box.after)}`
              : perOperation(box.after);
            return (
              <g key={box.key}>
                <title>{`${oneLine(box.name)}: ${counts} ${NAMES[quantity]} per ${oneLine(cell.operation)}`}</title>
                <rect
                  className={classes.box}
                  data-tone={tone}
                  x={box.x * drawn}
                  y={box.depth * ROW}
                  width={size}
                  height={ROW - 1}
                />
                {text && (
                  <text className={classes.name} x={box.x * drawn + 4} y={box.depth * ROW + 15}>
                    {text}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      </div>
    </Figure>
  );
}

function Key() {
  return (
    <span className={classes.key}>
      {(["less 3", "less 1", "same", "more 1", "more 3"] as const).map(tone => (
        <svg key={tone} viewBox="0 0 14 12" width="14" height="12" aria-hidden="true">
          <rect className={classes.box} data-tone={tone} width="14" height="12" />
        </svg>
      ))}
      fewer to more.
    </span>
  );
}

type Row = InstrumentCell["functions"][number];

function columnsOf(cell: InstrumentCell, quantity: Quantity): Column<Row>[] {
  return [
    {
      id: "name",
      header: "function",
      value: functionName,
      cell: of => oneLine(functionName(of)),
      rowHeader: true,
    },
    {
      id: "subsystem",
      header: "subsystem",
      value: subsystemOf,
      cell: of => oneLine(subsystemOf(of)),
    },
    { id: "file", header: "file", value: of => of.file, cell: of => oneLine(of.file) },
    ...Object.keys(cell.totals).map(
      (arm, at): Column<Row> => ({
        id: arm,
        header: arm,
        numeric: true,
        value: of => countsOf(of.per_op, quantity)[at],
        text: of => perOperation(countsOf(of.per_op, quantity)[at] ?? 0),
      }),
    ),
  ];
}

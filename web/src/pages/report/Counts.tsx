/** Where the counts of an instrumented device come from: sentences, tables and heat map. */
import { useState } from "react";
import type { Arm, InstrumentCell, TargetReport } from "@/api/types";
import { HeatMapFigure } from "@/figures/HeatMapFigure";
import {
  basis,
  type LineCounts,
  lineName,
  perOperation,
  SAME_NAME,
  SUBSYSTEMS_ARE,
  type SubsystemCounts,
  subsystemRows,
} from "@/lib/instrumented";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { ShowMore } from "@/parts/ShowMore";
import { FunctionBars } from "./Changed";
import classes from "./Counts.module.css";

/** Number of scenarios and settings shown initially. */
const INITIALLY_SHOWN = 1;

interface CountsProps {
  target: TargetReport;
  /** Counts whose functions are shown above. */
  above?: InstrumentCell | undefined;
}

export function Counts({ target, above }: CountsProps) {
  const [opened, setOpened] = useState(false);
  const cells = target.instrument;
  if (cells.length === 0) return null;
  const shown = opened ? cells : cells.slice(0, INITIALLY_SHOWN);
  const hidden = cells.length - shown.length;
  return (
    <div className={classes.whole}>
      <h3>Where it comes from</h3>
      {shown.map(cell => (
        <OneCell key={`${cell.scenario} ${cell.setting}`} cell={cell} above={above} />
      ))}
      <ShowMore hidden={hidden} onShow={() => setOpened(true)} />
    </div>
  );
}

function OneCell({ cell, above }: { cell: InstrumentCell; above: CountsProps["above"] }) {
  const where = [cell.scenario, cell.setting].filter(Boolean).join(" ");
  const notes = cell.notes.map(note => ` ${note.charAt(0).toUpperCase()}${note.slice(1)}.`).join("");
  return (
    <div className={classes.cell}>
      <ul className={classes.sentences}>
        {cell.sentences.map(sentence => (
          <li key={sentence}>{oneLine(sentence).replaceAll(" -> ", " → ")}</li>
        ))}
      </ul>
      {cell.subsystems.length > 0 && (
        <DataTable
          caption={`${where}: by subsystem (${basis(cell)})`}
          columns={subsystemColumns(cell)}
          rows={subsystemRows(cell)}
          rowKey={of => of.name}
          fixedOrder
        />
      )}
      {cell.changed.length > 0 && cell !== above && <FunctionBars cell={cell} />}
      {cell.pairs.length > 0 && (
        <DataTable
          caption={`${where}: lines that take and write cache lines`}
          columns={pairColumns(cell)}
          rows={cell.pairs}
          rowKey={of => `${of.taker_line} ${of.taker} ${of.writer_line} ${of.writer} ${of.kind}`}
          fixedOrder
        />
      )}
      {cell.lines.length > 0 && (
        <DataTable
          caption={`${where}: cache lines of data`}
          columns={lineColumns(cell)}
          rows={cell.lines}
          rowKey={of => of.symbol}
          fixedOrder
        />
      )}
      <p className={classes.note}>
        Counted by {oneLine(cell.emulator)}.{cell.subsystems.length > 0 && ` ${SUBSYSTEMS_ARE}`}
        {cell.lines.some(of => of.addresses > 1) && ` ${SAME_NAME}`}
        {Object.keys(cell.totals).length > 1 &&
          " Seeds: under how many of them the count changed in the direction of the mean change."}
        {oneLine(notes) && ` ${oneLine(notes)}`}
      </p>
      <HeatMapFigure title={`${where}: cache lines that move from CPU to CPU`} cell={cell} />
    </div>
  );
}

type Pair = InstrumentCell["pairs"][number];

function subsystemColumns(cell: InstrumentCell): Column<SubsystemCounts>[] {
  return [
    {
      id: "name",
      header: "subsystem",
      value: of => of.name,
      cell: of => oneLine(of.name),
      rowHeader: true,
    },
    ...countColumns<SubsystemCounts>(cell, "transfers", "cache lines", of => of.transfer_seeds),
    ...countColumns<SubsystemCounts>(cell, "instructions", "instructions", of => of.instruction_seeds),
  ];
}

function pairColumns(cell: InstrumentCell): Column<Pair>[] {
  return [
    {
      id: "taker",
      header: "takes the cache line",
      value: of => placeText(of.taker, of.taker_line, of.taker_source),
      cell: of => <Place name={of.taker} line={of.taker_line} source={of.taker_source} />,
      rowHeader: true,
    },
    ...countColumns<Pair>(cell, "transfers", "cache lines", of => of.seeds),
    { id: "kind", header: "access", value: of => of.kind },
    {
      id: "writer",
      header: "wrote it last",
      value: of => placeText(of.writer, of.writer_line, of.writer_source) || "not seen",
      cell: of =>
        of.writer ? (
          <Place name={of.writer} line={of.writer_line} source={of.writer_source} />
        ) : (
          <span className="muted">not seen</span>
        ),
      wrap: true,
    },
  ];
}

function lineColumns(cell: InstrumentCell): Column<LineCounts>[] {
  return [
    {
      id: "symbol",
      header: "data of a cache line",
      value: lineName,
      cell: of => oneLine(lineName(of)),
      rowHeader: true,
    },
    ...countColumns<LineCounts>(cell, "transfers", "transfers", of => of.seeds),
  ];
}

/** Return the columns of a count: one per kernel and, with two kernels, how many seeds agree. */
function countColumns<Row extends Pick<SubsystemCounts | Pair | LineCounts, "per_op">>(
  cell: InstrumentCell,
  quantity: "instructions" | "transfers",
  name: string,
  seedsOf: (of: Row) => number,
): Column<Row>[] {
  const arms = Object.keys(cell.totals);
  const columns = arms.map(
    (arm, at): Column<Row> => ({
      id: `${quantity}-${arm}`,
      header: `${name}, ${arm}`,
      numeric: true,
      value: of => countsOf(of.per_op, quantity)[at],
      text: of => perOperation(countsOf(of.per_op, quantity)[at] ?? 0),
    }),
  );
  if (arms.length < 2) return columns;
  return [
    ...columns,
    {
      id: `${quantity}-seeds`,
      header: "seeds",
      numeric: true,
      value: seedsOf,
      text: of => `${seedsOf(of)}/${cell.seeds.length}`,
    },
  ];
}

function Place({ name, line, source }: { name: string; line: string; source: string }) {
  return (
    <>
      {oneLine(name)} {line && <span className="muted">{oneLine(line)}</span>}
      {source && <code className={classes.source}>{oneLine(source)}</code>}
    </>
  );
}

function placeText(...parts: string[]): string {
  return oneLine(parts.filter(Boolean).join(" "));
}

/** Return the count of a function with each kernel, in the order baseline, candidate. */
function countsOf(
  perOp: Partial<Record<Arm, { instructions?: number; transfers?: number }>>,
  quantity: "instructions" | "transfers",
): number[] {
  return (["baseline", "candidate"] as const).flatMap(arm => {
    const found = perOp[arm];
    return found ? [found[quantity] ?? 0] : [];
  });
}

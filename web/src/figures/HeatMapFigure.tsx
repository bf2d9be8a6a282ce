/** Heat map of cache line transfers from CPU to CPU, with the topology along both edges. */
import { useMemo } from "react";
import type { InstrumentCell } from "@/api/types";
import { basis, perOperation } from "@/lib/instrumented";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import classes from "./HeatMapFigure.module.css";
import { cellsOf, type Domain, domainsOf, type Flow, flowsOf, type MapCell, orderOf } from "./heatmap";

const SIZE = 340;
const BAND = 18;
const TOP = 20;

export function HeatMapFigure({ title, cell }: { title: string; cell: InstrumentCell }) {
  const { topology, cpus } = cell;
  const order = useMemo(() => orderOf(topology), [topology]);
  const domains = useMemo(() => domainsOf(topology, order), [topology, order]);
  const { baseline, candidate } = cpus;
  const first = baseline ?? candidate;
  const known = useMemo(
    () => [baseline, candidate].filter(matrix => matrix !== undefined),
    [baseline, candidate],
  );
  const flows = useMemo(() => flowsOf(topology, known), [topology, known]);
  if (!first) return null;
  const arms = Object.keys(cpus);
  return (
    <Figure
      title={title}
      description={
        <>
          Rows are the CPUs that hold a cache line, columns those that take it, in the order of the topology (
          {basis(cell)}). Boxes are last-level cache domains, heavy lines separate NUMA nodes. A stronger
          colour is more transfers
          {candidate && baseline ? "; in the change, blue is fewer and orange is more." : "."}
        </>
      }
      table={
        <DataTable
          caption={title}
          captionHidden
          columns={columnsOf(arms)}
          rows={flows}
          rowKey={of => `${of.from} ${of.to}`}
        />
      }
    >
      <div className={classes.panels}>
        <Panel name={arms[0] ?? ""} cells={cellsOf(order, first)} domains={domains} size={order.length} />
        {baseline && candidate && (
          <Panel
            name="change with the candidate"
            cells={cellsOf(order, candidate, baseline)}
            domains={domains}
            size={order.length}
          />
        )}
      </div>
    </Figure>
  );
}

interface PanelProps {
  name: string;
  cells: readonly MapCell[];
  domains: readonly Domain[];
  size: number;
}

function Panel({ name, cells, domains, size }: PanelProps) {
  const step = SIZE / size;
  const y0 = TOP + BAND;
  return (
    <svg className={classes.panel} aria-hidden="true" viewBox={`0 0 ${BAND + SIZE + 2} ${y0 + SIZE + 2}`}>
      <text className={classes.title} x={0} y={12}>
        {name}
      </text>
      <rect className={classes.ground} x={BAND} y={y0} width={SIZE} height={SIZE} />
      {cells.map(cell => (
        <rect
          key={`${cell.row} ${cell.column}`}
          className={classes.cell}
          data-tone={cell.tone}
          fillOpacity={cell.strength}
          x={BAND + cell.column * step}
          y={y0 + cell.row * step}
          width={step}
          height={step}
        >
          <title>{`CPU ${cell.from} to CPU ${cell.to}: ${perOperation(cell.value)}`}</title>
        </rect>
      ))}
      {domains.map((domain, at) => {
        const start = domain.start * step;
        const length = (domain.end - domain.start) * step;
        const name = length >= 34 ? `L3 ${domain.l3}` : length >= 10 ? `${domain.l3}` : "";
        const isBorder = at > 0 && domains[at - 1]?.node !== domain.node;
        return (
          <g key={`${domain.node} ${domain.l3} ${domain.start}`}>
            <rect className={classes.band} x={BAND + start} y={y0 - BAND} width={length} height={BAND - 2} />
            <rect className={classes.band} x={0} y={y0 + start} width={BAND - 2} height={length} />
            <rect className={classes.own} x={BAND + start} y={y0 + start} width={length} height={length} />
            {name && (
              <text className={classes.domain} x={BAND + start + length / 2} y={y0 - 5}>
                {name}
              </text>
            )}
            {isBorder && (
              <path
                className={classes.border}
                d={`M${BAND + start} ${y0 - BAND}V${y0 + SIZE}M0 ${y0 + start}H${BAND + SIZE}`}
              />
            )}
          </g>
        );
      })}
    </svg>
  );
}

function columnsOf(arms: readonly string[]): Column<Flow>[] {
  return [
    { id: "from", header: "from", value: of => of.from, rowHeader: true },
    { id: "to", header: "to", value: of => of.to },
    ...arms.map(
      (arm, at): Column<Flow> => ({
        id: arm,
        header: arm,
        numeric: true,
        value: of => of.counts[at],
        text: of => perOperation(of.counts[at] ?? 0),
      }),
    ),
  ];
}

import { count, number, places } from "@/lib/numbers";
import classes from "./Boots.module.css";
import { acrossTopologies, type Cell, sidesOf } from "./model";

/** Most blocks that are drawn by default; the section of a comparison has all. */
const MOST = 16;
const WIDTH = 460;
const LEFT = 130;
const RIGHT = 16;
const ROW = 22;
const DIRECTIONS = { higher_is_better: "higher is better", lower_is_better: "lower is better", none: "" };

interface BootsProps {
  cells: readonly Cell[];
  of: Cell;
  /** Most blocks that are drawn. */
  most?: number;
}

interface Row {
  label: string;
  a: number;
  b: number;
}

/** Both boots of each block as a dumbbell, on every topology that has the metric. */
export function Boots({ cells, of: first, most = MOST }: BootsProps) {
  if (first.of.evidence === "none") return null;
  const rows = acrossTopologies(cells, first).flatMap(rowsOf);
  if (rows.length === 0) return null;
  const shown = rows.slice(0, most);
  const values = shown.flatMap(({ a, b }) => [a, b]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = high > low ? (high - low) * 0.08 : Math.abs(high) * 0.1 || 1;
  const at = (value: number) =>
    LEFT + ((value - low + room) / (high - low + 2 * room)) * (WIDTH - LEFT - RIGHT);
  const decimals = places([low, high]);
  const { metric, unit, direction } = first.of;
  const height = shown.length * ROW + 24;
  return (
    <figure className={classes.figure}>
      <figcaption>
        <strong>{metric.replaceAll("_", " ")}, each boot</strong>{" "}
        <span className="muted">{[unit, DIRECTIONS[direction]].filter(Boolean).join(", ")}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${height}`} width="100%" role="img" aria-label={describe(shown, decimals)}>
        {shown.map(({ label, a, b }, row) => {
          const y = row * ROW + ROW / 2;
          return (
            <g key={label}>
              <text x={0} y={y + 4} className={classes.label}>
                {label}
              </text>
              <line x1={at(a)} x2={at(b)} y1={y} y2={y} className={classes.line} />
              <circle cx={at(a)} cy={y} r={5} className={classes.a} />
              <rect
                x={at(b) - 4.5}
                y={y - 4.5}
                width={9}
                height={9}
                transform={`rotate(45 ${at(b)} ${y})`}
                className={classes.b}
              />
            </g>
          );
        })}
        {(high > low ? [low, high] : [low]).map(value => (
          <text key={value} x={at(value)} y={height - 6} textAnchor="middle" className={classes.tick}>
            {number(value, decimals)}
          </text>
        ))}
      </svg>
      <p className={classes.key}>
        <span className={classes.keyA}>
          ● {first.of.question === "kernel" ? "baseline" : first.of.reference}
        </span>
        <span className={classes.keyB}>
          ◆ {first.of.question === "kernel" ? "candidate" : first.of.setting}
        </span>
        {rows.length > most && <span className="muted">{count(rows.length - most, "more block")} below</span>}
      </p>
    </figure>
  );
}

function rowsOf(cell: Cell): Row[] {
  const { baseline, candidate } = sidesOf(cell);
  const other = new Map(candidate.dots.map(dot => [dot.block, dot.value]));
  return baseline.dots.flatMap(({ block, value }) => {
    const b = other.get(block);
    return b === undefined ? [] : [{ label: `${cell.target.device_type} ${block + 1}`, a: value, b }];
  });
}

function describe(rows: readonly Row[], decimals: number): string {
  return rows
    .map(({ label, a, b }) => `${label}: ${number(a, decimals)} to ${number(b, decimals)}`)
    .join("; ");
}

import { number, places } from "@/lib/numbers";
import { type Cell, sidesOf } from "./model";

const WIDTH = 360;
const ROW = 30;
const MARGIN = 12;

/** Both boots of each block as a pair, drawn as on the first screen of the report. */
export function Boots({ of }: { of: Cell }) {
  const { baseline, candidate } = sidesOf(of);
  const after = new Map(candidate.dots.map(dot => [dot.block, dot.value]));
  const rows = baseline.dots.flatMap(({ block, value }) => {
    const b = after.get(block);
    return b === undefined ? [] : [{ block, a: value, b }];
  });
  if (of.of.evidence === "none" || rows.length === 0) return null;
  const values = rows.flatMap(({ a, b }) => [a, b]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const at = (value: number) =>
    MARGIN + ((value - low) / (high - low || 1)) * (WIDTH - 2 * MARGIN - 20) + (high > low ? 10 : WIDTH / 2);
  const decimals = places([low, high]);
  const text = (value: number) => number(value, decimals);
  const height = rows.length * ROW + 24;
  return (
    <figure className="report-boots">
      <svg
        viewBox={`0 0 ${WIDTH} ${height}`}
        role="img"
        aria-label={rows.map(({ block, a, b }) => `block ${block + 1}: ${text(a)} to ${text(b)}`).join("; ")}
      >
        {rows.map(({ block, a, b }, row) => {
          const y = row * ROW + 22;
          return (
            <g key={block}>
              <text x={MARGIN} y={y - 10}>
                block {block + 1}
              </text>
              <line x1={at(a)} x2={at(b)} y1={y} y2={y} className="pair" />
              <path d={`M${at(b)} ${y - 7}l7 7-7 7-7-7z`} className="s1" />
              <circle cx={at(a)} cy={y} r={4} className="s0" />
            </g>
          );
        })}
        {(high > low ? [low, high] : [low]).map(value => (
          <text key={value} x={at(value)} y={height - 6} className="tick">
            {text(value)}
          </text>
        ))}
      </svg>
      <p className="report-key">
        <span className="report-a">● {baseline.name}</span>
        <span className="report-b">◆ {candidate.name}</span>
      </p>
    </figure>
  );
}

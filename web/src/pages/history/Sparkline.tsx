import { domainOf } from "@/figures/marks";
import classes from "./chart.module.css";

const WIDTH = 120;
const HEIGHT = 20;
const EDGE = 3;

/** The last values of a line, oldest first, without axes; the table has them as numbers. */
export function Sparkline({ values }: { values: readonly number[] }) {
  if (values.length === 0) return null;
  const [low, high] = domainOf(values);
  const x = (index: number) => EDGE + (index * (WIDTH - 2 * EDGE)) / Math.max(1, values.length - 1);
  const y = (value: number) => HEIGHT - EDGE - ((value - low) / (high - low)) * (HEIGHT - 2 * EDGE);
  const last = values.length - 1;
  return (
    <svg className={classes.spark} width={WIDTH} height={HEIGHT} aria-hidden="true">
      <path
        className={classes.tiny}
        d={values
          .map((value, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`)
          .join("")}
      />
      <circle cx={x(last)} cy={y(values[last] as number)} r={2.5} fill="var(--ink)" />
    </svg>
  );
}

import type { Comparison } from "@/api/types";
import { change, intervalOf, number, placesOfArms, spread } from "@/lib/numbers";
import classes from "./Value.module.css";

/** A number with its unit, without a line break. `decimals` are those of the column (`places`). */
export function Value({
  value,
  unit,
  decimals,
}: {
  value: number | null | undefined;
  unit?: string;
  decimals?: number;
}) {
  if (value == null) return <span className="muted">–</span>;
  return (
    <span className={classes.value}>
      {number(value, decimals)}
      {unit && <span className={classes.unit}> {unit}</span>}
    </span>
  );
}

type Arm = Comparison["baseline"];

/** Mean and standard deviation of one arm; without evidence the server sends only the mean. */
export function ArmValue({
  arm,
  of,
  exact = false,
}: {
  arm: Arm | undefined;
  of: readonly (Arm | undefined)[];
  /** The same count in every boot: shown without a deviation. */
  exact?: boolean;
}) {
  if (arm == null) return <span className="muted">–</span>;
  const decimals = placesOfArms(of);
  return <span className={classes.value}>{exact ? number(arm.mean, decimals) : spread(arm, decimals)}</span>;
}

/** Effect and interval of a comparison; a dash if there is none. */
export function Effect({ of }: { of: Comparison }) {
  if (of.effect == null) return <span className="muted">–</span>;
  return (
    <span className={classes.value}>
      {change(of)}
      <span className={classes.unit}> {of.effect_unit}</span>
      <span className={classes.interval}> {intervalOf(of)}</span>
    </span>
  );
}

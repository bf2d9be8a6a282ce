import type { Comparison } from "@/api/types";
import { change, interval, number, placesOfArms, spread, unitOfEffect } from "@/lib/numbers";
import classes from "./Value.module.css";

/** A number and its unit, which never part. `decimals`: those of its column (`places`). */
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

/** Mean and spread of one arm. Of a figure that is no evidence the server sends the mean alone, and that is what shows. */
export function ArmValue({
  arm,
  of,
  exact = false,
}: {
  arm: Arm | undefined;
  of: readonly (Arm | undefined)[];
  /** The same count in every boot: it has no spread. */
  exact?: boolean;
}) {
  if (arm == null) return <span className="muted">–</span>;
  const decimals = placesOfArms(of);
  return <span className={classes.value}>{exact ? number(arm.mean, decimals) : spread(arm, decimals)}</span>;
}

/** Effect and interval of a comparison; nothing where the server computed none. */
export function Effect({ of }: { of: Comparison }) {
  if (of.effect == null) return <span className="muted">–</span>;
  return (
    <span className={classes.value}>
      {change(of)}
      <span className={classes.unit}> {unitOfEffect(of)}</span>
      <span className={classes.interval}> {of.exact ? "exact" : interval(of.ci95)}</span>
    </span>
  );
}

/** Display texts for enum values of a plan. */
import type { Direction, Metric, Role } from "@/api/types";
import { effectUnitOf, withUnit } from "@/lib/numbers";

export const BETTER: Record<Direction, string> = {
  higher_is_better: "higher",
  lower_is_better: "lower",
  none: "n/a",
};

export const ROLES: Record<Role, string> = {
  primary: "primary",
  secondary: "secondary",
  explanatory: "explanatory",
};

/** Format the smallest relevant effect (delta): `1 lock`, `0.5 points (11 if emulated)`, `5 %`. */
export function deltaOf(metric: Metric): string {
  if (metric.delta == null) return "";
  const emulated = metric.emulator_delta ? ` (${metric.emulator_delta} if emulated)` : "";
  return withUnit(metric.delta, effectUnitOf(metric)) + emulated;
}

/** Format parameters as `name=value` pairs. */
export function parametersOf(parameters: { [name: string]: string | number }): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

/** Return the page of the documentation that a plan's README links to; null if it links to none. */
export function documentationOf(readme: string | undefined): string | null {
  const page = /\(\.\.\/\.\.\/docs\/([a-z0-9/-]+)\.md\)/.exec(readme ?? "")?.[1];
  return page === undefined ? null : `/docs/${page}/`;
}

/** What the closed words of a plan mean to a reader. */
import type { Direction, Metric, Role, TestPlan } from "@/api/types";
import { withUnit } from "@/lib/numbers";

export const BETTER: Record<Direction, string> = {
  higher_is_better: "higher",
  lower_is_better: "lower",
  none: "neither",
};

export const ROLES: Record<Role, string> = {
  primary: "decides",
  secondary: "is compared",
  explanatory: "explains",
};

/** `1 lock`, `0.5 points`, `5 %`: the smallest effect worth a person's attention. */
export function deltaOf(metric: Metric): string {
  if (metric.delta == null) return "";
  const unit = metric.scale === "ratio" ? "%" : metric.unit === "%" ? "points" : metric.unit;
  return withUnit(metric.delta, unit);
}

export function primaryOf(plan: TestPlan, role: "role_hardware" | "role_emulated"): string | null {
  return plan.metrics.find(metric => metric[role] === "primary")?.name ?? null;
}

export function parametersOf(parameters: { [name: string]: string | number }): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

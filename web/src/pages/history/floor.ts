/** The measured noise floor of a line: what A/A comparisons on devices of its type have shown. */
import { useQuery } from "@tanstack/react-query";
import { canariesQuery } from "@/api/queries";
import type { CanaryRecord, HistoryLine } from "@/api/types";
import { count, number } from "@/lib/numbers";
import { BAND_SPREADS } from "./geometry";

export interface Floor {
  /** Standard deviation between boots of equal kernels, in `unit`. */
  deviation: number;
  /** `%` of the level, or the metric's unit. */
  unit: string;
  device: string;
  /** A/A comparisons from which it is calculated. */
  canaries: number;
}

type Of = Pick<HistoryLine, "plan" | "device_type" | "metric" | "scenario">;

/** Return the floor of a line's metric from the device with the most A/A comparisons; null if none has one. */
export function floorOf(records: readonly CanaryRecord[], line: Of): Floor | null {
  const found = records
    .filter(record => record.device_type === line.device_type && record.plan === line.plan)
    .flatMap(record =>
      record.metrics.flatMap(({ metric, floor, effect_unit }): Floor[] =>
        metric === line.metric && floor !== null
          ? [{ deviation: floor, unit: effect_unit, device: record.device, canaries: record.canaries }]
          : [],
      ),
    );
  return found.reduce<Floor | null>(
    (best, each) => (best && best.canaries >= each.canaries ? best : each),
    null,
  );
}

/** Return the floor of a line as soon as it is known. */
export function useFloor(line: Of): Floor | null {
  const { data } = useQuery({ ...canariesQuery({ plan: line.plan }), staleTime: 600_000 });
  return data ? floorOf(data, line) : null;
}

/** Half of the floor's band around a level, in the metric's unit. */
export function floorBand(floor: Floor, middle: number): number {
  return BAND_SPREADS * (floor.unit === "%" ? (Math.abs(middle) * floor.deviation) / 100 : floor.deviation);
}

export function floorText({ deviation, unit, device, canaries }: Floor): string {
  return `${number(deviation)} ${unit} between boots of equal kernels on ${device} (${count(canaries, "A/A comparison")})`;
}

import { expect, test } from "vitest";
import type { CanaryRecord } from "@/api/types";
import { floorBand, floorOf, floorText } from "./floor";
import { makeLine } from "./testing";

function record(of: Partial<CanaryRecord>, metric: string, floor: number | null, unit = "%"): CanaryRecord {
  const rate = {
    comparisons: 0,
    called_different: 0,
    constant: 0,
    rate: null,
    rate_low: null,
    rate_high: null,
  };
  return {
    device: "xeon-1",
    device_type: "xeon-2s",
    plan: "flush",
    kind: "same_kernel",
    canaries: 12,
    since: "2026-11-01T00:00:00Z",
    until: "2026-11-02T00:00:00Z",
    false_positives: rate,
    line: "",
    metrics: [
      {
        metric,
        unit: "locks",
        scale: unit === "%" ? "ratio" : "difference",
        role: "primary",
        evidence: "mechanism",
        scenario: "fsync",
        floor,
        blocks: 12,
        effects: [],
        false_positives: rate,
        effect_unit: unit,
      },
    ],
    ...of,
  };
}

const line = makeLine();

test("the floor is that of the device with the most comparisons, of this metric, plan and type", () => {
  const records = [
    record({ canaries: 40 }, "locks", null),
    record({ canaries: 90, device_type: "tiny" }, "locks", 9),
    record({ canaries: 90, plan: "other" }, "locks", 9),
    record({ canaries: 90 }, "bw", 9),
    record({ canaries: 12 }, "locks", 3),
    record({ canaries: 30, device: "xeon-2" }, "locks", 2),
  ];
  const floor = floorOf(records, line);
  expect(floor).toEqual({ deviation: 2, unit: "%", device: "xeon-2", canaries: 30 });
  expect(floorText(floor ?? { deviation: 0, unit: "", device: "", canaries: 0 })).toBe(
    "2 % between boots of equal kernels on xeon-2 (30 A/A comparisons)",
  );
  expect(floorOf(records.slice(0, 4), line)).toBeNull();
});

test("a floor in percent grows with the level, one in units does not", () => {
  const [relative, absolute] = ["%", "locks"].map(unit => floorOf([record({}, "locks", 2, unit)], line));
  expect(relative && floorBand(relative, 50)).toBe(2);
  expect(absolute && floorBand(absolute, 50)).toBe(4);
});

import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { CanaryMetric, CanaryRecord } from "@/api/types";
import { renderPart } from "@/testing/render";
import { Canaries, effectText, floorText, rateText } from "./Canaries";

const false_positives = {
  comparisons: 412,
  called_different: 11,
  constant: 0,
  rate: 0.0267,
  rate_low: 0.015,
  rate_high: 0.047,
};
const metric: CanaryMetric = {
  metric: "bandwidth",
  unit: "MiB/s",
  scale: "ratio",
  role: "primary",
  evidence: "performance",
  scenario: "high",
  floor: 0.6247,
  blocks: 360,
  effects: [
    { blocks: 6, effect: 2.104 },
    { blocks: 8, effect: 1.31 },
    { blocks: 10, effect: 1.08 },
    { blocks: 16, effect: null },
  ],
  false_positives,
  effect_unit: "%",
};
const record: CanaryRecord = {
  device: "xeon-1",
  device_type: "xeon",
  plan: "xfs-fsync",
  kind: "same_kernel",
  canaries: 60,
  since: "2026-01-01T00:00:00Z",
  until: "2026-02-01T00:00:00Z",
  false_positives,
  metrics: [metric],
  line: "On xeon-1, 412 A/A comparisons of xfs-fsync: 11 called different, 2.7 %",
};

test("floor, effects and rate have their units", () => {
  expect(floorText(metric)).toBe("0.625 %");
  expect([6, 8, 10, 16].map(blocks => effectText(metric, blocks))).toEqual([
    "2.1 %",
    "1.31 %",
    "1.08 %",
    "none",
  ]);
  expect(rateText(metric)).toBe("11, 2.7 % [1.5, 4.7]");
});

test("counts that never vary find any difference", () => {
  const constant = {
    ...metric,
    floor: null,
    effects: [],
    false_positives: {
      ...false_positives,
      comparisons: 0,
      constant: 60,
      rate: null,
      rate_low: null,
      rate_high: null,
    },
  };
  expect(floorText(constant)).toBe("0");
  expect(effectText(constant, 6)).toBe("any");
  expect(rateText(constant)).toBe("no noise");
});

test("the sentence and the table are shown", async () => {
  renderPart(<Canaries records={[record]} by="plan" caption="A/A comparisons on xeon-1" />);
  await screen.findByText(/11 called different, 2.7 %/);
  expect(screen.getByRole("rowheader").textContent).toBe("xfs-fsync");
});

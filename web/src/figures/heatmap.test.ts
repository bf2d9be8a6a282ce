import { expect, test } from "vitest";
import { makeInstrumentCell } from "@/testing/instrument";
import { cellsOf, domainsOf, flowsOf, orderOf } from "./heatmap";

const { topology, cpus } = makeInstrumentCell();
const { baseline = [], candidate = [] } = cpus;

test("CPUs of one L3 domain are neighbours in the drawing", () => {
  const order = orderOf(topology);
  expect(order).toEqual([0, 2, 1, 3]);
  expect(domainsOf(topology, order)).toEqual([
    { l3: 0, node: 0, start: 0, end: 2 },
    { l3: 1, node: 0, start: 2, end: 4 },
  ]);
});

test("cells without transfers are not drawn, and the strongest is the largest", () => {
  const cells = cellsOf([0, 1, 2, 3], baseline);
  expect(cells).toHaveLength(8);
  expect(Math.max(...cells.map(cell => cell.strength))).toBe(1);
});

test("a change has a direction", () => {
  const cells = cellsOf([0, 1, 2, 3], candidate, baseline);
  expect(cells.map(({ from, to, tone }) => [from, to, tone])).toEqual([
    [0, 2, "less"],
    [2, 3, "more"],
  ]);
});

test("flows between domains add up to all transfers", () => {
  const flows = flowsOf(topology, [baseline, candidate]);
  expect(flows.reduce((sum, flow) => sum + (flow.counts[0] ?? 0), 0)).toBe(20);
  expect(flows.map(({ from, to }) => `${from} ${to}`)).toContain("L3 0 L3 1");
});

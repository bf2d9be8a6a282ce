import { expect, test } from "vitest";
import { markOf } from "@/figures/marks";
import {
  cutsIn,
  deviationOf,
  drawnPoints,
  levelsIn,
  linePath,
  markPath,
  scalesOf,
  spacedIndices,
  ticksOf,
  valueDomain,
} from "./geometry";
import { around } from "./ShiftPage";
import { makeLineData, makePoint } from "./testing";

const BOX = { left: 50, right: 150, top: 10, bottom: 110 };

test("points have equal distances, and a position finds its point", () => {
  const { x, y, step, indexAt } = scalesOf({ start: 10, end: 20 }, [0, 100], BOX);
  expect([step, x(10), x(19), x(9.5)]).toEqual([10, 55, 145, 50]);
  expect([y(0), y(100), y(25)]).toEqual([110, 10, 85]);
  expect([0, 50, 59.9, 60, 999].map(indexAt)).toEqual([10, 10, 10, 11, 19]);
});

test("the domain has the values, deviations and bands of the range only", () => {
  const { series, levels } = makeLineData(20);
  const [low, high] = valueDomain(series, levels, { start: 0, end: 10 });
  expect(low).toBeLessThan(33);
  expect(low).toBeGreaterThan(32);
  expect(high).toBeGreaterThan(35);
  expect(high).toBeLessThan(36);
  expect(valueDomain([], [], { start: 0, end: 0 })).toEqual([0, 1]);
  expect(levelsIn(levels, { start: 10, end: 12 }).map(each => each.start)).toEqual([10]);
});

test("one boot, or equal boots, have no deviation to draw", () => {
  expect(deviationOf({ n: 4, stddev: 0.5 })).toBe(0.5);
  expect([
    deviationOf({ n: 1, stddev: null }),
    deviationOf({ n: 1, stddev: 0.5 }),
    deviationOf({ n: 4, stddev: 0 }),
  ]).toEqual([null, null, null]);
});

test("a range that fits is drawn exactly", () => {
  const { series } = makeLineData(100);
  expect(drawnPoints(series, { start: 20, end: 60 }, 50)).toEqual(
    Array.from({ length: 40 }, (_, at) => 20 + at),
  );
});

test("a longer range keeps its extremes and its regressions, in order, within the limit", () => {
  const points = Array.from({ length: 5000 }, (_, index) => makePoint(index, { value: Math.sin(index) }));
  points[1234] = makePoint(1234, { value: 99 });
  points[3210] = makePoint(3210, { value: -99 });
  points[2500] = makePoint(2500, { value: 0, verdict: "regression" });
  const drawn = drawnPoints(points, { start: 0, end: 5000 });
  expect(drawn.length).toBeLessThanOrEqual(1500);
  expect(drawn.length).toBeGreaterThan(900);
  expect([1234, 3210, 2500].every(index => drawn.includes(index))).toBe(true);
  expect(drawn).toEqual([...new Set(drawn)].sort((a, b) => a - b));
});

test("ticks are round numbers inside the domain", () => {
  expect(ticksOf([32.4, 41.8], 5)).toEqual({ at: [34, 36, 38, 40], decimals: 0 });
  const small = ticksOf([0.011, 0.0192], 4);
  expect(small.decimals).toBe(3);
  expect(small.at.map(value => value.toFixed(3))).toEqual(["0.015"]);
  expect(ticksOf([-1, 1], 4).at).toEqual([-1, -0.5, 0, 0.5, 1]);
});

test("labels are at the ends and evenly between them", () => {
  expect(spacedIndices({ start: 10, end: 20 }, 4)).toEqual([10, 13, 16, 19]);
  expect(spacedIndices({ start: 0, end: 3 }, 8)).toEqual([0, 1, 2]);
  expect(spacedIndices({ start: 0, end: 1 }, 8)).toEqual([0]);
  expect(spacedIndices({ start: 0, end: 0 }, 8)).toEqual([]);
});

test("the line is interrupted where the environment has changed, also between points that are not drawn", () => {
  const points = Array.from({ length: 6 }, (_, index) =>
    makePoint(index, index === 3 ? { cut: "disk a -> b" } : {}),
  );
  const scales = scalesOf({ start: 0, end: 6 }, [0, 100], BOX);
  expect(cutsIn(points)).toEqual([3]);
  expect(linePath(points, [0, 1, 2, 3, 4, 5], scales).replace(/[^ML]/g, "")).toBe("MLLMLL");
  expect(linePath(points, [0, 2, 4, 5], scales).replace(/[^ML]/g, "")).toBe("MLML");
});

test("each verdict has a shape of its own", () => {
  const path = (verdict: Parameters<typeof markOf>[0]) => markPath(markOf(verdict), 0, 0, 4);
  expect(path("improvement")).toMatch(/^M0 -5\.4L/);
  expect(path("regression")).toMatch(/^M0 5\.4L/);
  expect(path("equivalent")).toContain("v7.2");
  expect(path("inconclusive")).toContain("a4 4");
});

test("a shift is shown with twenty heads on both sides", () => {
  const line = makeLineData(100);
  expect(around(line, { after: makePoint(50).head }).range).toEqual({ start: 30, end: 70 });
  expect(around(line, { after: makePoint(2).head }).range).toEqual({ start: 0, end: 22 });
});

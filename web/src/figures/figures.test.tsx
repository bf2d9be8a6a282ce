import * as Plot from "@observablehq/plot";
import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { MetricCurve, Verdict } from "@/api/types";
import { renderPart } from "@/testing/render";
import { CurveFigure, rowsOf as curveRows, lines } from "./CurveFigure";
import { domainOf, markOf } from "./marks";
import { plane, strips } from "./TradeoffFigure";

function drawn(options: Plot.PlotOptions): Element {
  return Plot.plot({ width: 600, ...options });
}

/** Return the attributes of an SVG with invalid numbers, the result of missing values. */
function invalidAttributes(drawing: Element): string[] {
  return [...drawing.querySelectorAll("*")].flatMap(element =>
    [...element.attributes]
      .filter(({ value }) => /NaN|undefined|Infinity/.test(value))
      .map(({ name, value }) => `${name}=${value}`),
  );
}

test("every verdict has its own shape, not only a colour", () => {
  const form = (verdict: Verdict | null) => {
    const { symbol, rotate, filled } = markOf(verdict);
    return `${symbol} ${rotate} ${filled}`;
  };
  const certain = ["improvement", "regression", "equivalent", "below_threshold", "inconclusive"] as const;
  expect(new Set(certain.map(form)).size).toBe(certain.length);
});

test("the trade-off has two axes on hardware and one on an emulated device", () => {
  const locality = { name: "locality", unit: "%", summary: "Work that ran where it was queued" };
  const busy = { name: "busy", unit: "%", summary: "Busy share of all CPUs" };
  const places = ["HIGH", "LOW"].flatMap(scenario =>
    ["scope=system", "scope=cache"].map(setting => ({ scenario, setting })),
  );
  const mean = { mean: 50, stddev: 1, n: 6, modes: null };
  const means = places.map(place => ({ ...place, locality: mean, conservation: mean }));
  const dots = (conservation: number | null) =>
    places.flatMap(place =>
      Array.from({ length: 6 }, (_, block) => ({ ...place, block, locality: 45 + block, conservation })),
    );
  for (const width of [900, 360]) {
    const wide = drawn(plane(dots(90), means, [locality, busy], width, Plot));
    expect(wide.querySelectorAll('[aria-label="dot"] path')).toHaveLength(24 + 4);
    expect(invalidAttributes(wide)).toEqual([]);
    const strip = drawn(strips(dots(null), means, locality, width, Plot));
    expect(strip.querySelectorAll('[aria-label="dot"] circle')).toHaveLength(24);
    expect(strip.textContent).not.toContain("busy");
    expect(invalidAttributes(strip)).toEqual([]);
  }
});

const curve: MetricCurve = {
  metric: "share",
  unit: "%",
  evidence: "mechanism",
  kernel: "baseline",
  over: "issuers",
  over_unit: "issuers",
  lines: ["scope=system", "scope=cache"].map((setting, at) => ({
    setting,
    points: [1, 3, 8, 24, 48, 96].map((x, of) => ({
      scenario: `P${of}`,
      x,
      mean: at ? 80 - of : 10 * of,
      stddev: of ? 1 : null,
      n: 6,
    })),
  })),
  crossings: [{ first: "scope=cache", second: "scope=system", low: 24, high: 96, estimate: 60 }],
  says: ["scope=system overtakes scope=cache between 24 and 96 issuers"],
};

test("a curve has a mark per point, a line per setting and an area per crossing", () => {
  for (const width of [900, 320]) {
    const drawing = drawn({ ...lines(curve, width, Plot), width });
    expect(drawing.querySelectorAll('[aria-label="dot"] path')).toHaveLength(12);
    expect(drawing.querySelectorAll('[aria-label="line"] path')).toHaveLength(2);
    expect(drawing.querySelectorAll('[aria-label="rect"] rect')).toHaveLength(1);
    expect(invalidAttributes(drawing)).toEqual([]);
    const ticks = (lines(curve, width, Plot).x as { ticks: number[] }).ticks;
    expect([ticks[0], ticks.at(-1)]).toEqual([1, 96]);
  }
});

test("a curve of one point is drawn; a missing point is empty in the table", async () => {
  const [system, cache] = curve.lines as [MetricCurve["lines"][number], MetricCurve["lines"][number]];
  const one = { ...curve, crossings: [], lines: [{ ...system, points: system.points.slice(0, 1) }] };
  expect(invalidAttributes(drawn(lines(one, 600, Plot)))).toEqual([]);
  const holed = { ...curve, lines: [{ ...system, points: system.points.slice(1) }, cache] };
  expect(curveRows(holed).map(row => [row.x, row.points.size])).toEqual([
    [1, 1],
    [3, 2],
    [8, 2],
    [24, 2],
    [48, 2],
    [96, 2],
  ]);
  await renderPart(<CurveFigure title="share over issuers" summary="Work at home" curve={holed} />);
  expect(screen.getByText(/Scope=system overtakes scope=cache between 24 and 96 issuers\./)).toBeTruthy();
});

test("an axis has padding at both ends, also for equal values", () => {
  expect(domainOf([3, 5])).toEqual([2.88, 5.12]);
  expect(domainOf([0, 0])).toEqual([-1, 1]);
  const [low, high] = domainOf([33, 33]);
  expect([low < 33, high > 33]).toEqual([true, true]);
});

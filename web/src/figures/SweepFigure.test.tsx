import * as Plot from "@observablehq/plot";
import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/testing/render";
import { makeSweepCurve } from "@/testing/sweep";
import { SweepFigure, sweep } from "./SweepFigure";

const curve = makeSweepCurve();

function drawn(of = curve): Element {
  return Plot.plot({ width: 600, ...sweep(of, "L3 domains", 600, Plot) });
}

test("each point with an effect has a mark, each interval a line, each missing point its verdict", () => {
  const drawing = drawn();
  const titles = [...drawing.querySelectorAll("title")].map(each => each.textContent);
  expect(titles).toEqual([
    "1 L3 domains: 0.00 % exact, equivalent",
    "2 L3 domains: +0.010 % [\u22120.050, +0.080], equivalent",
    "4 L3 domains: \u22121.10 % [\u22121.20, \u22121.05], improvement",
  ]);
  expect(
    drawing.querySelectorAll(
      "[aria-label=rule] line[stroke^='var(--same)'], [aria-label=rule] line[stroke^='var(--good)']",
    ),
  ).toHaveLength(2);
  expect(drawing.textContent).toContain("failed");
  const invalid = [...drawing.querySelectorAll("*")].flatMap(element =>
    [...element.attributes].filter(({ value }) => /NaN|undefined|Infinity/.test(value)),
  );
  expect(invalid).toEqual([]);
});

test("the axis is ordinal: its points are equally far from each other", () => {
  const places = [...drawn().querySelectorAll("[aria-label='x-axis tick label'] text")].map(each =>
    Number(/translate\(([\d.]+)/.exec(each.getAttribute("transform") ?? "")?.[1]),
  );
  expect(places).toHaveLength(4);
  const steps = places.slice(1).map((x, at) => x - (places[at] as number));
  expect(Math.max(...steps) - Math.min(...steps)).toBeLessThan(1);
});

test("the figure says where the verdict changes and why a point is missing; its table has every point", async () => {
  await renderPart(<SweepFigure name="fsync kernel_instructions_per_op" curve={curve} axis="L3 domains" />);
  const figure = screen.getByRole("figure");
  expect(figure.textContent).toContain("better at 4 L3 domains, the same at 1 and 2, failed at 8");
  expect(figure.textContent).toContain("L3 domains 8: the candidate showed a panic");
  const rows = within(within(figure).getByRole("table", { hidden: true })).getAllByRole("row", {
    hidden: true,
  });
  expect(rows).toHaveLength(5);
  expect(rows[0]?.textContent).toContain("candidate, instructions");
  expect(rows[3]?.textContent).toContain("1978");
  expect(rows[3]?.textContent).toContain("0.031 %");
  expect(rows[1]?.textContent).toContain("not measured");
});

test("a curve without any effect has no drawing", async () => {
  const points = curve.points.map(point => ({ ...point, effect: null, ci95: null, verdict: null }));
  await renderPart(<SweepFigure name="fsync" curve={{ ...curve, points }} axis="L3 domains" />);
  expect(screen.getByText(/No point has an effect to draw/)).toBeTruthy();
  expect(document.querySelector("[data-plot]")).toBeNull();
});

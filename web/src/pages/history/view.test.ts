import { expect, test } from "vitest";
import { containing, lowerBound, pressed, type Shown, shownOf, viewOf, widened, zoomed } from "./view";

const HEADS = Array.from({ length: 20 }, (_, index) => (index + 1) * 10);
const ALL = { from: null, to: null, at: null };

test("a view without limits shows all heads, also those that come later", () => {
  const { range } = shownOf(HEADS, ALL);
  expect(range).toEqual({ start: 0, end: 20 });
  expect(viewOf(HEADS, { range, at: null })).toEqual(ALL);
  expect(shownOf([...HEADS, 210], viewOf(HEADS, { range, at: null })).range.end).toBe(21);
});

test("a link shows the same heads after the line has grown", () => {
  const view = viewOf(HEADS, { range: { start: 4, end: 12 }, at: 6 });
  expect(view).toEqual({ from: 50, to: 120, at: 70 });
  const grown = [5, ...HEADS, 210];
  expect(shownOf(grown, view)).toEqual({ range: { start: 5, end: 13 }, at: 7 });
});

test("limits that are no heads of the line are rounded inwards, and nonsense shows all", () => {
  expect(shownOf(HEADS, { from: 45, to: 125, at: 45 })).toEqual({ range: { start: 4, end: 12 }, at: null });
  expect(shownOf(HEADS, { from: 120, to: 50, at: null }).range).toEqual({ start: 0, end: 20 });
  expect(shownOf(HEADS, { from: 900, to: null, at: 900 })).toEqual({
    range: { start: 0, end: 20 },
    at: null,
  });
  expect(shownOf([], { from: 1, to: 2, at: 1 })).toEqual({ range: { start: 0, end: 0 }, at: null });
});

test("a range never has fewer than five heads or leaves the line", () => {
  expect(widened({ start: 19, end: 20 }, 20)).toEqual({ start: 15, end: 20 });
  expect(widened({ start: 0, end: 1 }, 20)).toEqual({ start: 0, end: 5 });
  expect(widened({ start: 1, end: 2 }, 3)).toEqual({ start: 0, end: 3 });
});

test("zooming keeps the point around which it zooms in its place", () => {
  expect(zoomed({ start: 0, end: 100 }, 0.5, 50, 100)).toEqual({ start: 25, end: 75 });
  expect(zoomed({ start: 0, end: 100 }, 0.5, 99, 100)).toEqual({ start: 50, end: 100 });
  expect(zoomed({ start: 25, end: 75 }, 2, 50, 100)).toEqual({ start: 0, end: 100 });
  expect(zoomed({ start: 40, end: 46 }, 0.5, 42, 100)).toEqual({ start: 40, end: 45 });
});

test("a range moves by as little as shows a point", () => {
  expect(containing({ start: 5, end: 10 }, 7, 20)).toEqual({ start: 5, end: 10 });
  expect(containing({ start: 5, end: 10 }, 10, 20)).toEqual({ start: 6, end: 11 });
  expect(containing({ start: 5, end: 10 }, 2, 20)).toEqual({ start: 2, end: 7 });
});

test("keys select, zoom and reset", () => {
  const press = (keys: string[], from: Shown, total = 20) =>
    keys.reduce((shown, key) => pressed(key, shown, total) ?? shown, from);
  const whole: Shown = { range: { start: 0, end: 20 }, at: null };
  expect(press(["ArrowRight"], whole).at).toBe(0);
  expect(press(["ArrowLeft"], whole).at).toBe(19);
  expect(press(["Home", "ArrowLeft"], whole).at).toBe(0);
  expect(press(["End", "ArrowLeft", "ArrowLeft"], whole).at).toBe(17);
  const zoomedIn = press(["End", "+", "+"], whole);
  expect(zoomedIn).toEqual({ range: { start: 15, end: 20 }, at: 19 });
  expect(press(["Home"], zoomedIn)).toEqual({ range: { start: 0, end: 5 }, at: 0 });
  expect(press(["-", "-"], zoomedIn).range).toEqual({ start: 0, end: 20 });
  expect(press(["Escape"], zoomedIn)).toEqual({ range: { start: 0, end: 20 }, at: 19 });
  expect(press(["Escape", "Escape"], zoomedIn)).toEqual(whole);
  expect(pressed("Escape", whole, 20)).toBeNull();
  expect(pressed("a", whole, 20)).toBeNull();
  expect(pressed("End", whole, 0)).toBeNull();
});

test("the place of a number among ascending ones", () => {
  expect([5, 10, 15, 200, 300].map(value => lowerBound(HEADS, value))).toEqual([0, 0, 1, 19, 20]);
});

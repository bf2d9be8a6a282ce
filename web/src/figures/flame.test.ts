import { expect, test } from "vitest";
import { makeInstrumentCell } from "@/testing/instrument";
import { boxesOf, fittingText, toneOf } from "./flame";

const boxes = boxesOf(makeInstrumentCell(), "transfers");
const box = (name: string) => boxes.find(each => each.name === name);

test("the parts of a box fill its width", () => {
  for (const depth of [1, 2, 3]) {
    const width = boxes.filter(each => each.depth === depth).reduce((sum, each) => sum + each.width, 0);
    expect(width).toBeLessThanOrEqual(1 + 1e-9);
  }
  expect(box("kernel/workqueue.c")).toMatchObject({ before: 42, after: 13, depth: 2 });
  expect(box("all")).toMatchObject({ x: 0, width: 1, before: 50, after: 21 });
});

test("a function has a change only if every seed agrees", () => {
  expect(toneOf(box("flush_workqueue_prep_pwqs")?.change ?? 0)).toBe("less 3");
  expect(box("process_one_work")?.change).toBe(0);
});

test("the sum of other functions is one box without a file", () => {
  expect(box("(other)")).toMatchObject({ depth: 1, before: 7 });
});

test("the tone has direction and strength", () => {
  expect([0, 0.019, -0.02, 0.1, -0.9].map(toneOf)).toEqual(["same", "same", "less 1", "more 2", "less 3"]);
});

test("a text that does not fit loses the change, then the path, then its end", () => {
  const texts = [40, 20, 12, 6, 3].map(room => fittingText("kernel/workqueue.c", "-69.0 %", room));
  expect(texts).toEqual(["kernel/workqueue.c -69.0 %", "workqueue.c -69.0 %", "workqueue.c", "workq…", ""]);
});

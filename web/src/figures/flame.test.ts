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
  expect(box("fs/xfs")).toMatchObject({ before: 4, after: 4, depth: 1 });
  expect(box("all")).toMatchObject({ x: 0, width: 1, before: 50, after: 21 });
});

test("a function has a change only if every seed agrees", () => {
  expect(toneOf(box("flush_workqueue_prep_pwqs")?.change ?? 0)).toBe("less 3");
  expect(box("process_one_work")?.change).toBe(0);
});

test("a file that is a subsystem of its own has one box", () => {
  expect(box("kernel/workqueue.c")).toMatchObject({ before: 43, after: 14, depth: 1 });
  expect(boxes.filter(each => each.name === "kernel/workqueue.c")).toHaveLength(1);
});

test("the sums of other functions are in the box of their file or subsystem", () => {
  const sums = boxes.filter(each => each.name === "other functions of this file");
  expect(sums.map(each => each.key)).toEqual([
    "all\nkernel/workqueue.c\nother functions of this file",
    "all\nfs/xfs\nfs/xfs/xfs_log.c\nother functions of this file",
  ]);
  expect(box("other files of this subsystem")).toMatchObject({ depth: 2, before: 1 });
  expect(box("other functions")).toMatchObject({ depth: 1, before: 3 });
});

test("the tone has direction and strength", () => {
  expect([0, 0.019, -0.02, 0.1, -0.9].map(toneOf)).toEqual(["same", "same", "less 1", "more 2", "less 3"]);
});

test("a text that does not fit loses the change, then the path, then its end", () => {
  const texts = [40, 20, 12, 6, 3].map(room => fittingText("kernel/workqueue.c", "-69.0 %", room));
  expect(texts).toEqual(["kernel/workqueue.c -69.0 %", "workqueue.c -69.0 %", "workqueue.c", "workq…", ""]);
});

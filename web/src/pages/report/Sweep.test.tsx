import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/testing/render";
import { makeReport } from "@/testing/report";
import { makeSweep, makeSweepCurve } from "@/testing/sweep";
import { nameOf, Sweep } from "./Sweep";

const report = makeReport();

test("a sweep has a figure for each metric, named with what distinguishes it", async () => {
  const curves = [makeSweepCurve(), makeSweepCurve({ metric: "transfers_across_l3_per_op" })];
  await renderPart(<Sweep report={{ ...report, sweep: makeSweep(curves) }} />);
  expect(screen.getByRole("heading", { name: /^Sweep: 1, 2, 4 and 8 L3 domains/ })).toBeTruthy();
  expect(screen.getAllByRole("figure")).toHaveLength(2);
  const study = makeSweepCurve({
    question: "setting",
    setting: "scope=cache",
    reference: "scope=cpu",
    kernel: "candidate",
  });
  expect(nameOf(study, makeSweep([study]))).toBe(
    "fsync scope=cache against scope=cpu kernel_instructions_per_op",
  );
  const other = makeSweepCurve({ plan: "dm-crypt" });
  expect(nameOf(other, makeSweep([other, makeSweepCurve()]))).toBe(
    "dm-crypt fsync kernel_instructions_per_op",
  );
});

test("only four figures are shown until the others are asked for", async () => {
  const curves = ["a", "b", "c", "d", "e", "f"].map(scenario => makeSweepCurve({ scenario }));
  await renderPart(<Sweep report={{ ...report, sweep: makeSweep(curves) }} />);
  expect(screen.getAllByRole("figure")).toHaveLength(4);
  expect(screen.getByRole("button", { name: "2 more scenarios and settings" })).toBeTruthy();
});

test("a report without a sweep has no such section", async () => {
  const { container } = await renderPart(<Sweep report={report} />);
  expect(container.textContent).toBe("");
});

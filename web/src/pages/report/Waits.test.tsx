import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { TargetReport, WaitCell } from "@/api/types";
import { renderPart } from "@/testing/render";
import { makeReport } from "@/testing/report";
import { Waits } from "./Waits";

const [hardware, emulated] = makeReport().targets as [TargetReport, TargetReport];

test("each function has its number of work items, bounds of its times, and where it started", async () => {
  await renderPart(<Waits target={emulated} />);
  const table = screen.getByRole("table", { hidden: true });
  const [, first] = within(table).getAllByRole("row", { hidden: true });
  const texts = [...(first as HTMLElement).querySelectorAll("th, td")].map(cell => cell.textContent);
  expect(texts).toEqual([
    "kcryptd_crypt",
    "baseline",
    "747",
    "≤ 64 us",
    "≤ 16.4 ms",
    "12.5 %",
    "25.0 %",
    "not counted",
  ]);
  expect(screen.getByText(/upper ends of histogram buckets.*times are values only/)).toBeTruthy();
  expect(screen.getAllByText(/6 traced repetitions of each kernel/)).not.toEqual([]);
  expect(screen.getByText("7 other functions not shown.")).toBeTruthy();
});

test("a kernel that cannot count leaves its reason instead of a table", async () => {
  const [cell] = emulated.waits as [WaitCell];
  const lacking = { ...cell, works: [], functions: 0, repetitions: {}, notes: ["candidate: no such event"] };
  await renderPart(<Waits target={{ ...emulated, waits: [lacking] }} />);
  expect(screen.queryByRole("table", { hidden: true })).toBeNull();
  expect(screen.getByText("HIGH scope=system, candidate: no such event.")).toBeTruthy();
});

test("a plan without traced repetitions has no such section", async () => {
  const { container } = await renderPart(<Waits target={hardware} />);
  expect(container.textContent).toBe("");
});

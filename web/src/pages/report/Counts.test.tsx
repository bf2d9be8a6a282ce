import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { TargetReport } from "@/api/types";
import { instrumented, makeInstrumentCell } from "@/testing/instrument";
import { renderPart } from "@/testing/render";
import { makeReport } from "@/testing/report";
import { Counts } from "./Counts";

const target = instrumented(makeReport().targets[1] as TargetReport);

test("sentences, tables and figures say where the counts come from", async () => {
  await renderPart(<Counts target={target} />);
  expect(screen.getByText("50.0 → 21.0 cache lines move per fsync")).toBeTruthy();
  const functions = screen.getByRole("table", { name: /functions that changed most/ });
  expect(within(functions).getByRole("rowheader", { name: /^flush_workqueue_prep_pwqs \*/ })).toBeTruthy();
  expect(within(functions).getAllByTitle("3 of 6 seeds")).toHaveLength(2);
  const lines = screen.getByRole("table", { name: /lines that take and write/ });
  expect(within(lines).getByText("raw_spin_lock_irq(&pool->lock);")).toBeTruthy();
  const subsystems = screen.getByRole("table", { name: /by subsystem/ });
  expect(within(subsystems).getAllByRole("row")).toHaveLength(1 + 6);
  expect(within(subsystems).getByRole("rowheader", { name: "whole kernel" })).toBeTruthy();
  expect(screen.getByText("pool_workqueue cache + 0x80 (up to 4 lines)")).toBeTruthy();
  expect(screen.getAllByRole("figure")).toHaveLength(1);
});

test("only the first of several settings is shown until the others are asked for", async () => {
  const cells = [makeInstrumentCell(), { ...makeInstrumentCell(), setting: "scope=cache" }];
  await renderPart(<Counts target={{ ...target, instrument: cells }} />);
  expect(screen.getByRole("button", { name: "1 more scenario or setting" })).toBeTruthy();
});

test("a target of another device has no such section", async () => {
  const { container } = await renderPart(<Counts target={makeReport().targets[0] as TargetReport} />);
  expect(container.textContent).toBe("");
});

import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { ExplainedComparison, TargetReport } from "@/api/types";
import { renderPart } from "@/testing/render";
import { makeReport } from "@/testing/report";
import { Explanation } from "./Explanation";

const target = makeReport().targets[0] as TargetReport;

const explained: ExplainedComparison = {
  scenario: "fsync",
  setting: "",
  question: "kernel",
  reference: "baseline",
  kernel: null,
  metric: "locks_per_flush",
  boots: 2,
  sentences: ["waits for a lock in __flush_workqueue: 0.89 -> 0.21 per fsync"],
  differences: [
    {
      topic: "contended_at",
      name: "__flush_workqueue",
      is_time: false,
      unit: "per fsync",
      reference: [0.9, 0.88],
      compared: [0.2, 0.22],
      text: "waits for a lock in __flush_workqueue: 0.89 -> 0.21 per fsync",
    },
    {
      topic: "migrated",
      name: "between NUMA nodes",
      is_time: false,
      unit: "per fsync",
      reference: [2, 2],
      compared: [1, 1],
      text: "migrations between NUMA nodes: 2 -> 1 per fsync",
    },
  ],
  notes: ["a histogram was full: 3 events are not counted"],
};

test("differences are sentences with every boot's values, and are no causes", async () => {
  const explanation = { run_id: 4, comparisons: [explained], reason: "" };
  await renderPart(<Explanation target={{ ...target, explanation }} />);
  expect(screen.getByText("waits for a lock in __flush_workqueue: 0.89 → 0.21 per fsync")).toBeTruthy();
  expect(screen.getByText("fsync locks_per_flush (2 traced boots a side)")).toBeTruthy();
  expect(screen.getByText(/not its causes/)).toBeTruthy();
  expect(screen.getByText("a histogram was full: 3 events are not counted")).toBeTruthy();
  const table = screen.getByRole("table", { hidden: true });
  expect(within(table).getByText("2, 2")).toBeTruthy();
});

test("the reason is shown if nothing was recorded", async () => {
  const explanation = { run_id: 4, comparisons: [], reason: "the traced boots failed: no power" };
  await renderPart(<Explanation target={{ ...target, explanation }} />);
  expect(
    screen.getByText("What else differs: not recorded: the traced boots failed: no power."),
  ).toBeTruthy();
});

test("a target whose primary metric does not differ has no such section", async () => {
  const { container } = await renderPart(<Explanation target={target} />);
  expect(container.textContent).toBe("");
});

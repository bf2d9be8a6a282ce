import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { LadderRung } from "@/api/types";
import { renderPart } from "@/testing/render";
import { makeReport } from "@/testing/report";
import { Ladder, shownOf } from "./Ladder";

const [target] = makeReport().targets;
if (!target) throw new Error("the report has a target");
const primary = target.comparisons.find(each => each.role === "primary" && each.question === "kernel");
if (!primary) throw new Error("the target has a primary metric");

function rung(patch: number, change: Partial<LadderRung>): LadderRung {
  return {
    patch,
    subject: `workqueue: change ${patch}`,
    commit: "c".repeat(40),
    build_id: patch,
    arm: patch === 3 ? "candidate" : "patch-1",
    state: "measured",
    reference: patch - 1,
    verdict: "equivalent",
    headline: "",
    comparisons: [],
    failure: null,
    ...change,
  };
}

const RUNGS = [
  rung(1, {
    verdict: "regression",
    comparisons: [{ ...primary, verdict: "regression", effect: 21.2, patch: 1 }],
  }),
  rung(2, {
    state: "not_built",
    verdict: "failed",
    failure: {
      kind: "user",
      summary: "undeclared here",
      advice: "",
      excerpt: "error: undeclared",
      of_variant: false,
      stack: [],
      defect: "",
    } as unknown as NonNullable<LadderRung["failure"]>,
  }),
  rung(3, { verdict: "improvement", reference: 1 }),
];

test("each patch has its verdict, and one that does not build says so", async () => {
  const sentence = "patch 1 regresses; patch 3 improves";
  await renderPart(<Ladder target={{ ...target, ladder: { rungs: RUNGS, boots_per_block: 3, sentence } }} />);
  expect(screen.getByText("Patch 1 regresses; patch 3 improves.")).toBeTruthy();
  const rows = screen.getAllByRole("listitem");
  expect(rows).toHaveLength(4);
  const [first, second, third, whole] = rows as [HTMLElement, HTMLElement, HTMLElement, HTMLElement];
  expect(first.textContent).toContain("+21.2");
  expect(within(second).getByText("does not build")).toBeTruthy();
  expect(second.textContent).toContain("error: undeclared");
  expect(third.textContent).toContain("against patch 1");
  expect(whole.textContent).toContain("Whole series");
});

test("a rung shows the largest effect among those with its verdict", () => {
  const small = { ...primary, verdict: "regression" as const, effect: 1 };
  const large = { ...small, effect: 3 };
  const other = { ...small, verdict: "improvement" as const, effect: -9 };
  expect(shownOf("regression", [small, other, large])).toBe(large);
  expect(shownOf("inconclusive", [small, other])).toBe(other);
  expect(shownOf("regression", [])).toBeUndefined();
});

test("a run that was not walked has no ladder", async () => {
  const { container } = await renderPart(<Ladder target={target} />);
  expect(container.textContent).toBe("");
});

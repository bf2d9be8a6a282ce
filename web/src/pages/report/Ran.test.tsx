import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { RanLines, TargetReport } from "@/api/types";
import { renderPart } from "@/testing/render";
import { makeReport } from "@/testing/report";
import { Ran } from "./Ran";
import { diffLines } from "./ranLines";

const target = makeReport().targets[0] as TargetReport;

const DIFF = `diff --git a/kernel/workqueue.c b/kernel/workqueue.c
index 1..2 100644
--- a/kernel/workqueue.c
+++ b/kernel/workqueue.c
@@ -10,3 +10,4 @@ static void f(void)
 	a();
--- b();
+++ b();
+	return;
 }
\\ No newline at end of file
@@ -90,1 +91,2 @@ static void g(void)
 	c();
+	d();
`;
const LINES: RanLines[] = [
  { file: "kernel/workqueue.c", function: "f", arm: "baseline", ran: "measured", lines: [11] },
  { file: "kernel/workqueue.c", function: "f", arm: "candidate", ran: "measured", lines: [11] },
  { file: "kernel/workqueue.c", function: "f", arm: "candidate", ran: "never", lines: [12] },
  { file: "kernel/workqueue.c", function: "g", arm: "candidate", ran: "outside", lines: [92] },
];

test("lines have the numbers of their own side, also if they look like the name of a file", () => {
  expect(diffLines(DIFF, LINES).map(line => [line.text, line.ran])).toEqual([
    ["kernel/workqueue.c", undefined],
    ["@@ -10,3 +10,4 @@ static void f(void)", undefined],
    [" \ta();", undefined],
    ["--- b();", "measured"],
    ["+++ b();", "measured"],
    ["+\treturn;", "never"],
    [" }", undefined],
    ["\\ No newline at end of file", undefined],
    ["@@ -90,1 +91,2 @@ static void g(void)", undefined],
    [" \tc();", undefined],
    ["+\td();", "outside"],
  ]);
});

test("the sentences are shown, and each changed line of the diff has a mark", async () => {
  const sentence = "the plan executed 1 of 3 changed lines with code";
  const ran = {
    measured: 1,
    outside: 1,
    never: 1,
    lines: LINES,
    functions: {},
    not_exercised: "",
    sentences: [sentence],
  };
  await renderPart(<Ran target={{ ...target, ran }} diff={DIFF} />);
  expect(screen.getByText(sentence)).toBeTruthy();
  const line = screen.getByText((_, element) => element?.textContent === "○did not run: +\treturn;\n");
  expect(line.getAttribute("data-ran")).toBe("never");
});

test("a target without reported lines shows nothing", async () => {
  const { container } = await renderPart(<Ran target={target} diff={DIFF} />);
  expect(container.textContent).toBe("");
});

import { expect, test } from "vitest";
import { clean, isSameFailure, oneLine, stateOrOutcome, VERDICT_ORDER, VERDICTS } from "./words";

test("each verdict has its own sign; no evidence has neither sign nor colour", () => {
  const looks = Object.values(VERDICTS).map(look => look.sign);
  expect(new Set(looks).size).toBe(looks.length);
  expect(VERDICTS.no_evidence).toMatchObject({ sign: "", tone: "none" });
});

test("every verdict is in the severity order", () => {
  expect(VERDICT_ORDER[0]).toBe("failed");
  expect(VERDICT_ORDER.at(-1)).toBe("no_evidence");
  expect(VERDICT_ORDER).toHaveLength(Object.keys(VERDICTS).length);
});

test("an outcome is preferred to a state", () => {
  expect(stateOrOutcome({ state: "finished", outcome: "passed" })).toBe("passed");
  expect(stateOrOutcome({ state: "running", outcome: null })).toBe("running");
});

test("control characters of submitted text are made visible", () => {
  expect(clean("a\x1b[31mb\u202ec\r\nd\te")).toBe("a^[[31mb<202e>c\nd\te");
  expect(oneLine("  two\n lines ")).toBe("two lines");
});

test("two oopses are the same if their call traces are", () => {
  const title = "BUG: kernel NULL pointer dereference, address: ";
  const oops = (address: string, trace: string) => ({
    kind: "kernel" as const,
    summary: `oops: ${title}${address}`,
    excerpt: `${title}${address}`,
    advice: "",
    of_variant: false,
    stack: [],
    defect: `oops: ${title}# in ${trace}`,
  });
  const main = oops("0008", "flush_one@kernel/workqueue.c:7 < flush_all@kernel/workqueue.c:12");
  expect(
    isSameFailure(oops("0ff8", "flush_one@kernel/workqueue.c:7 < flush_all@kernel/workqueue.c:12"), main),
  ).toBe(true);
  expect(isSameFailure(oops("0008", "free_one@kernel/workqueue.c:7"), main)).toBe(false);
  expect(isSameFailure({ ...main, defect: "" }, main)).toBe(true);
});

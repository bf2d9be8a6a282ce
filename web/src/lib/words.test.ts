import { expect, test } from "vitest";
import { BY_WEIGHT, clean, howItStands, oneLine, VERDICTS } from "./words";

test("no two verdicts look alike, and no evidence has neither sign nor colour", () => {
  const looks = Object.values(VERDICTS).map(look => look.sign);
  expect(new Set(looks).size).toBe(looks.length);
  expect(VERDICTS.no_evidence).toMatchObject({ sign: "", tone: "none" });
});

test("every verdict has its place in the order", () => {
  expect(BY_WEIGHT[0]).toBe("failed");
  expect(BY_WEIGHT.at(-1)).toBe("no_evidence");
  expect(BY_WEIGHT).toHaveLength(Object.keys(VERDICTS).length);
});

test("an outcome says more than a state", () => {
  expect(howItStands({ state: "finished", outcome: "passed" })).toBe("passed");
  expect(howItStands({ state: "running", outcome: null })).toBe("running");
});

test("what submitted text would do to a screen is shown instead", () => {
  expect(clean("a\x1b[31mb\u202ec\r\nd\te")).toBe("a^[[31mb<202e>c\nd\te");
  expect(oneLine("  two\n lines ")).toBe("two lines");
});

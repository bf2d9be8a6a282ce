import { expect, test } from "vitest";
import type { Bisection, BisectionCommit } from "@/api/types";
import { chanceText, culpritText, effectText, revisionText, subjectOf } from "./labels";
import { rowsOf } from "./rows";

function makeCommit(position: number, of: Partial<BisectionCommit> = {}): BisectionCommit {
  return {
    commit: position.toString(16).padStart(40, "0"),
    subject: `workqueue: change ${position}`,
    author: "Ada <ada@example.org>",
    is_merge: false,
    position,
    probability: 0.001,
    unusable: "",
    effect: null,
    ci95: null,
    blocks: 0,
    passed: 0,
    failed: 0,
    submissions: [],
    ...of,
  };
}

test("commits that nobody has tried are one row, with their probability", () => {
  const commits = Array.from({ length: 64 }, (_, index) => makeCommit(index + 1));
  commits[31] = makeCommit(32, { submissions: [3], effect: 0.1 });
  commits[40] = makeCommit(41, { probability: 0.9 });
  commits[41] = makeCommit(42, { unusable: "does not build" });
  const rows = rowsOf(commits);
  expect(rows.map(row => (row.commit ? row.position : `${row.count} from ${row.position}`))).toEqual([
    "31 from 1",
    32,
    "8 from 33",
    41,
    42,
    "21 from 43",
    64,
  ]);
  expect(rows[0]?.probability).toBeCloseTo(0.031);
});

test("few commits have a row each", () => {
  expect(rowsOf([makeCommit(1), makeCommit(2), makeCommit(3)]).every(row => row.commit)).toBe(true);
});

test("texts", () => {
  expect(chanceText(0.0004)).toBe("<0.1 %");
  expect(chanceText(0.9999)).toBe(">99.9 %");
  expect(chanceText(0.042)).toBe("4.2 %");
  expect(revisionText("0123456789abcdef0123456789abcdef01234567")).toBe("0123456789ab");
  expect(revisionText("for-next")).toBe("for-next");
  const ratio = { scale: "ratio", effect_unit: "%" } as const;
  expect(effectText(ratio, 2.31, [1.9, 2.75])).toBe("+2.31 % [+1.90, +2.75]");
  expect(effectText(ratio, null, null)).toBe("");
  const request = { metric: null } as Bisection["request"];
  expect(subjectOf({ request })).toBe("kernel failure");
  const culprit = makeCommit(255);
  expect(culpritText({ culprit, first: culprit.commit })).toBe("000000000000");
  expect(culpritText({ culprit: null, first: null })).toBe("");
});

import { expect, test } from "vitest";
import type { SubmissionVersion, TargetSummary } from "@/api/types";
import { versionsOf } from "./SeriesPage";

const target = (device_type: string, verdict: TargetSummary["verdict"]) =>
  ({ device_type, verdict, plan: "flush" }) as TargetSummary;
const submission = (id: number, version: number | null, targets: TargetSummary[], outcome = "passed") =>
  ({ id, version, targets, outcome }) as SubmissionVersion;

test("submissions of a version are merged, and the newest on a device type counts", () => {
  const [second, first] = versionsOf([
    submission(1, 1, [target("tiny", "improvement"), target("xeon", "equivalent")]),
    submission(2, 2, [target("tiny", "improvement")]),
    submission(3, 1, [target("tiny", "regression")]),
  ]);
  expect([second?.version, first?.version]).toEqual([2, 1]);
  expect(first?.submissions.map(each => each.id)).toEqual([3, 1]);
  expect(first?.cells.get("tiny")?.verdict).toBe("regression");
  expect(first?.cells.get("xeon")?.verdict).toBe("equivalent");
});

test("the worst target of a submission decides a device type; canceled ones say nothing", () => {
  const [only] = versionsOf([
    submission(1, 1, [target("tiny", "improvement"), target("tiny", "regression")]),
    submission(2, 1, [target("tiny", "inconclusive")], "canceled"),
  ]);
  expect(only?.cells.get("tiny")?.verdict).toBe("regression");
});

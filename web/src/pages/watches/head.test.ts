import { expect, test } from "vitest";
import type { WatchedHead } from "@/api/types";
import { notesOf, relatedText } from "./head";

const HEAD: WatchedHead = {
  id: 2,
  ref: "for-next",
  name: "for-next",
  commit: "b".repeat(40),
  state: "measured",
  reason: "",
  seen_at: "2026-01-05T12:00:00Z",
  returned_at: null,
  compared_with: { id: 1, name: "for-next", commit: "a".repeat(40) },
  skipped_by: null,
  submission_id: 7,
  submitted_at: null,
  ended_at: null,
  verdicts: ["regression"],
  related: { ahead: 12, behind: 0 },
  devices: {},
  cut: "",
  range: null,
};

test("a head says how far it is from its baseline, and what was not measured", () => {
  expect(relatedText(HEAD)).toBe("12 commits");
  expect(relatedText({ related: { ahead: 1, behind: 3 } })).toBe("1 commit, 3 no longer there");
  expect(relatedText({ related: null })).toBe("");
  expect(notesOf(HEAD)).toEqual([]);
  expect(notesOf({ ...HEAD, cut: "measured on tiny-2 instead of tiny-1" })).toEqual([
    "history is cut: measured on tiny-2 instead of tiny-1",
  ]);
});

test("a skipped head names the one that is measured instead once", () => {
  const skipped_by = { id: 3, name: "for-next", commit: "d".repeat(40) };
  expect(notesOf({ ...HEAD, state: "skipped", skipped_by })).toEqual(["dddddddddddd is measured instead"]);
  const reason = "dddddddddddd was seen before it could be measured";
  expect(notesOf({ ...HEAD, state: "skipped", skipped_by, reason })).toEqual([reason]);
});

test("a range is what to bisect, unless the branch was rewritten", () => {
  const range = {
    good: "a".repeat(40),
    bad: "b".repeat(40),
    commits: 12,
    skipped: ["c".repeat(40)],
    descends: true,
  };
  expect(notesOf({ ...HEAD, range })).toEqual([
    "to bisect: aaaaaaaaaaaa..bbbbbbbbbbbb, 12 commits; heads between: cccccccccccc",
  ]);
  expect(notesOf({ ...HEAD, range: { ...range, descends: false } })[0]).toContain(
    "there is no range to bisect",
  );
});

import { expect, test } from "vitest";
import type { WatchedHead, WatchedTree } from "@/api/types";
import { notesOf, relatedText } from "./head";
import { NEW_TREE, treeDraftOf, treeYaml, unreadableParameters, watchedTreeOf } from "./treeDraft";
import { treeObstacle } from "./Watched";

const TREE: Required<WatchedTree> = {
  name: "stable",
  summary: "",
  enabled: true,
  tree: "stable",
  url: null,
  branches: [],
  tags: ["v6.12.*"],
  targets: ["xfs-fsync@xeon-2s"],
  parameters: { jobs: 32, size: "64k" },
  blocks: 3,
  priority: 20,
  owner: "bot",
  every_minutes: 360,
  batch: "range",
  minutes_a_day: 120,
  quiet_hours: [{ begins: "07:00", ends: "18:00" }],
};
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

test("the form keeps every field of a watched tree", () => {
  expect(watchedTreeOf(treeDraftOf(TREE), true)).toEqual(TREE);
  expect(watchedTreeOf(treeDraftOf(TREE), false).enabled).toBe(false);
  const url = "https://git.example/x.git";
  expect(watchedTreeOf(treeDraftOf({ ...TREE, url, blocks: null }), true)).toMatchObject({
    url,
    blocks: null,
  });
  expect(watchedTreeOf(NEW_TREE, true)).toMatchObject({ batch: "newest", every_minutes: 60, blocks: null });
});

test("a parameter without a value is named before anything is sent", () => {
  expect(unreadableParameters("jobs=32\n a = b=c \n")).toEqual([]);
  expect(unreadableParameters("jobs\n=3\nsize=\ntwo words=1")).toEqual([
    "jobs",
    "=3",
    "size=",
    "two words=1",
  ]);
});

test("a watched tree is a file without defaults", () => {
  expect(treeYaml(TREE)).toBe(`name: stable
tree: stable
tags: ["v6.12.*"]
targets: [xfs-fsync@xeon-2s]
parameters: {jobs: 32, size: "64k"}
blocks: 3
priority: 20
owner: bot
every_minutes: 360
batch: range
minutes_a_day: 120
quiet_hours: [{begins: "07:00", ends: "18:00"}]
`);
});

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

test("a failed look is worse than a wait", () => {
  expect(treeObstacle({ problem: "no branch x", waiting_for: "quiet hours" })?.tone).toBe("bad");
  expect(treeObstacle({ problem: "", waiting_for: "quiet hours" })).toEqual({
    tone: "unsure",
    text: "quiet hours",
  });
  expect(treeObstacle({ problem: "", waiting_for: "" })).toBeNull();
});

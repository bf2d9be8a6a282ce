import { expect, test } from "vitest";
import type { Failure, ListWatch, TreeWatch, WatchView } from "@/api/types";
import { draftOf, linesOf, NEW_WATCH, specOf, unreadableParameters, watchYaml } from "./draft";
import { headCounts, reasonCounts } from "./labels";
import { toDecisionFilters, toHeadFilters, WATCH_PARAMS } from "./search";
import { obstacle, quietText, quietUntil, takesText } from "./watch";

const LIST: Required<ListWatch> = {
  kind: "list",
  name: "workqueue",
  summary: "series that ask",
  archive: "lkml",
  enabled: false,
  paths: ["kernel/workqueue.c", "fs/xfs/"],
  subjects: ["less locks"],
  authors: ["@example.org"],
  only_if_asked: true,
  targets: ["xfs-fsync@xeon-2s"],
  what_it_touches: false,
  tree: "linus",
  owner: "list-bot",
  commanders: ["kay@example.org"],
  minutes_a_day: 240,
  quiet_hours: [{ begins: "22:00:00", ends: "06:00:00" }],
};
const TREE: Required<TreeWatch> = {
  kind: "tree",
  name: "stable",
  summary: "",
  enabled: false,
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
const NOON = new Date("2026-01-05T12:00:00Z");
const MIDNIGHT = new Date("2026-01-05T23:30:00Z");
const FAILURE: Failure = {
  kind: "infrastructure",
  summary: "the archive answered 503",
  advice: "",
  defect: "",
  excerpt: "",
  of_variant: false,
  stack: [],
};

function view(change: Partial<WatchView> = {}): WatchView {
  return {
    spec: LIST,
    from_file: false,
    created_at: "2026-01-01T00:00:00Z",
    created_by: "admin",
    enabled_at: "2026-01-01T00:00:00Z",
    changed_at: "2026-01-01T00:00:00Z",
    changed_by: "admin",
    minutes_used: 12.4,
    problems: [],
    waiting_for: "",
    repository: null,
    mailing_list: {
      archive: "lkml",
      list: "lkml@vger.example",
      read_at: "2026-01-05T11:59:00Z",
      mails: 7,
      last_mail_at: null,
      undecided: 0,
      failure: null,
      failing_since: null,
      waiting_for_worker_since: null,
    },
    ...change,
  };
}

const listed = (change: Partial<NonNullable<WatchView["mailing_list"]>>) =>
  view({ mailing_list: { ...(view().mailing_list as NonNullable<WatchView["mailing_list"]>), ...change } });

const looked = (problem: string, waiting_for: string) =>
  view({
    spec: { ...TREE, quiet_hours: [] },
    mailing_list: null,
    repository: { url: "", looked_at: null, next_look_at: null, problem, heads: {} },
    waiting_for,
  });

test("what a watch takes is said in words", () => {
  expect(takesText(LIST)).toBe('kernel/workqueue.c, fs/xfs/, "less locks", @example.org, if asked');
  expect(takesText(LIST, 2)).toBe("kernel/workqueue.c, fs/xfs/, 2 more, if asked");
  expect(takesText({ ...LIST, paths: [], subjects: [], authors: [] })).toBe("every series, if asked");
  expect(takesText({ ...LIST, only_if_asked: false, subjects: [], authors: [] })).toBe(
    "kernel/workqueue.c, fs/xfs/",
  );
  expect(takesText({ ...TREE, branches: ["for-next"] })).toBe("for-next, v6.12.*");
});

test("quiet hours reach over midnight", () => {
  expect(quietText(LIST.quiet_hours)).toBe("22:00 to 06:00 UTC");
  expect(quietText([])).toBe("");
  expect(quietUntil(LIST.quiet_hours, NOON)).toBeNull();
  expect(quietUntil(LIST.quiet_hours, MIDNIGHT)).toBe("06:00");
  expect(quietUntil([{ begins: "11:00:00", ends: "12:00:00" }], NOON)).toBeNull();
  expect(quietUntil([{ begins: "12:00:00", ends: "13:30:00" }], NOON)).toBe("13:30");
});

test("a watch says why it stands still, the worst first", () => {
  expect(obstacle(view(), NOON)).toBeNull();
  expect(obstacle(view(), MIDNIGHT)).toEqual({ tone: "unsure", text: "quiet hours until 06:00 UTC" });
  expect(obstacle(view({ minutes_used: 240 }), NOON)?.text).toBe("the budget of 24 hours is used up");
  expect(obstacle(listed({ waiting_for_worker_since: "2026-01-05T11:50:00Z" }), NOON)?.text).toBe(
    "waits for a worker of the queue lists for 10 min",
  );
  expect(obstacle(listed({ failure: FAILURE, failing_since: "2026-01-05T09:00:00Z" }), MIDNIGHT)).toEqual({
    tone: "bad",
    text: "the list cannot be read for 15 h: the archive answered 503",
  });
  expect(obstacle(view({ problems: ["tree: no tree 'linus'"] }), MIDNIGHT)?.tone).toBe("bad");
  expect(obstacle(looked("no branch x", "238 of 240 minutes"), NOON)).toEqual({
    tone: "bad",
    text: "the last look failed: no branch x",
  });
  expect(obstacle(looked("", "238 of 240 minutes"), NOON)?.text).toBe("238 of 240 minutes");
  expect(obstacle(looked("", ""), NOON)).toBeNull();
});

test("a watch that is disabled stands still only for what it lacks", () => {
  expect(obstacle(view({ enabled_at: null, mailing_list: null, minutes_used: 999 }), MIDNIGHT)).toBeNull();
  expect(obstacle(view({ enabled_at: null, problems: ["owner: no account"] }), NOON)?.text).toBe(
    "owner: no account",
  );
});

test("the form keeps every field of a watch", () => {
  const short = { ...LIST, quiet_hours: [{ begins: "22:00", ends: "06:00" }] };
  expect(specOf(draftOf(LIST), false)).toEqual(short);
  expect(specOf(draftOf(LIST), true).enabled).toBe(true);
  expect(specOf(draftOf(TREE), false)).toEqual(TREE);
  const url = "https://git.example/x.git";
  expect(specOf(draftOf({ ...TREE, url, blocks: null }), false)).toMatchObject({ url, blocks: null });
  const touching = { ...LIST, targets: [], what_it_touches: true };
  expect(specOf(draftOf(touching), false)).toMatchObject({ targets: [], what_it_touches: true });
  expect(watchYaml(touching)).toContain("what_it_touches: true\n");
  expect(linesOf(" a \n\nb\r\n")).toEqual(["a", "b"]);
});

test("a new watch has the fields of its kind, with their defaults", () => {
  expect(specOf(NEW_WATCH, false)).toMatchObject({ kind: "list", only_if_asked: true, minutes_a_day: 240 });
  expect(specOf(NEW_WATCH, false)).not.toHaveProperty("batch");
  const tree = specOf({ ...NEW_WATCH, kind: "tree" }, false);
  expect(tree).toMatchObject({ batch: "newest", every_minutes: 60, blocks: null });
  expect(tree).not.toHaveProperty("archive");
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

test("a watch is a file without defaults, but with what decides whether it takes anything", () => {
  expect(watchYaml(LIST)).toBe(`kind: list
name: workqueue
summary: series that ask
archive: lkml
tree: linus
paths: [kernel/workqueue.c, fs/xfs/]
subjects: [less locks]
authors: ["@example.org"]
only_if_asked: true
targets: [xfs-fsync@xeon-2s]
owner: list-bot
commanders: [kay@example.org]
minutes_a_day: 240
quiet_hours: [{begins: "22:00", ends: "06:00"}]
`);
  expect(watchYaml({ ...LIST, only_if_asked: false, enabled: true })).toContain("only_if_asked: false\n");
  expect(watchYaml({ ...LIST, enabled: true })).toContain("enabled: true\n");
  expect(watchYaml(TREE)).toBe(`kind: tree
name: stable
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

test("reasons and heads are counted, the most frequent reason first", () => {
  expect(reasonCounts({ incomplete: 1, paths: 12 })).toBe("12 other files, 1 incomplete");
  expect(reasonCounts({})).toBe("");
  expect(headCounts({ skipped: 2, measured: 3 })).toBe("3 measured, 2 skipped");
  expect(headCounts({})).toBe("no heads");
});

test("only filters that are set are sent, and a preview has at most 30 days", () => {
  expect(toDecisionFilters({ decision: "", reason: "", cursor: "" }, 5)).toEqual({ limit: 5 });
  expect(toDecisionFilters({ decision: "waiting", reason: "quota", cursor: "9" }, 5)).toEqual({
    limit: 5,
    state: "waiting",
    reason: "quota",
    cursor: "9",
  });
  expect(toHeadFilters({ head: "", ref: "v6.*", cursor: "" }, 5)).toEqual({ limit: 5, ref: "v6.*" });
  expect(["7", "31", "0", undefined].map(days => WATCH_PARAMS.days.read(days))).toEqual([
    7,
    null,
    null,
    null,
  ]);
});

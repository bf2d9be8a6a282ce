import { expect, test } from "vitest";
import type { Failure, ListRule, RuleView } from "@/api/types";
import { headCounts, reasonCounts } from "./labels";
import { obstacle, quietText, quietUntil, takesText } from "./rule";
import { draftOf, linesOf, NEW_RULE, ruleOf, ruleYaml } from "./ruleDraft";
import { RULE_PARAMS, toDecisionFilters, toHeadFilters } from "./search";

const RULE: Required<ListRule> = {
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

function view(change: Partial<RuleView> = {}): RuleView {
  return {
    rule: RULE,
    from_file: false,
    enabled_at: "2026-01-01T00:00:00Z",
    changed_at: "2026-01-01T00:00:00Z",
    changed_by: "admin",
    minutes_used: 12.4,
    problems: [],
    watched: {
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

const watched = (change: Partial<NonNullable<RuleView["watched"]>>) =>
  view({ watched: { ...(view().watched as NonNullable<RuleView["watched"]>), ...change } });

test("what a rule takes is said in words", () => {
  expect(takesText(RULE)).toBe('kernel/workqueue.c, fs/xfs/, "less locks", @example.org, if asked');
  expect(takesText(RULE, 2)).toBe("kernel/workqueue.c, fs/xfs/, 2 more, if asked");
  expect(takesText({ ...RULE, paths: [], subjects: [], authors: [] })).toBe("every series, if asked");
  expect(takesText({ ...RULE, only_if_asked: false, subjects: [], authors: [] })).toBe(
    "kernel/workqueue.c, fs/xfs/",
  );
});

test("quiet hours reach over midnight", () => {
  expect(quietText(RULE.quiet_hours)).toBe("22:00 to 06:00 UTC");
  expect(quietText([])).toBe("");
  expect(quietUntil(RULE.quiet_hours, NOON)).toBeNull();
  expect(quietUntil(RULE.quiet_hours, MIDNIGHT)).toBe("06:00");
  expect(quietUntil([{ begins: "11:00:00", ends: "12:00:00" }], NOON)).toBeNull();
  expect(quietUntil([{ begins: "12:00:00", ends: "13:30:00" }], NOON)).toBe("13:30");
});

test("a rule says why it stands still, the worst first", () => {
  expect(obstacle(view(), NOON)).toBeNull();
  expect(obstacle(view(), MIDNIGHT)).toEqual({ tone: "unsure", text: "quiet hours until 06:00 UTC" });
  expect(obstacle(view({ minutes_used: 240 }), NOON)?.text).toBe("the budget of 24 hours is used up");
  expect(obstacle(watched({ waiting_for_worker_since: "2026-01-05T11:50:00Z" }), NOON)?.text).toBe(
    "waits for a worker of the queue lists for 10 min",
  );
  expect(obstacle(watched({ failure: FAILURE, failing_since: "2026-01-05T09:00:00Z" }), MIDNIGHT)).toEqual({
    tone: "bad",
    text: "the list cannot be read for 15 h: the archive answered 503",
  });
  expect(obstacle(view({ problems: ["tree: no tree 'linus'"] }), MIDNIGHT)?.tone).toBe("bad");
});

test("a rule that is off stands still only for what it lacks", () => {
  expect(obstacle(view({ enabled_at: null, watched: null, minutes_used: 999 }), MIDNIGHT)).toBeNull();
  expect(obstacle(view({ enabled_at: null, problems: ["owner: no account"] }), NOON)?.text).toBe(
    "owner: no account",
  );
});

test("the form keeps every field of a rule", () => {
  const short = { ...RULE, quiet_hours: [{ begins: "22:00", ends: "06:00" }] };
  expect(ruleOf(draftOf(RULE), false)).toEqual(short);
  expect(ruleOf(draftOf(RULE), true).enabled).toBe(true);
  expect(linesOf(" a \n\nb\r\n")).toEqual(["a", "b"]);
  expect(ruleOf(NEW_RULE, false).only_if_asked).toBe(true);
  const touching = { ...RULE, targets: [], what_it_touches: true };
  expect(ruleOf(draftOf(touching), false)).toMatchObject({ targets: [], what_it_touches: true });
  expect(ruleYaml(touching)).toContain("what_it_touches: true\n");
});

test("a rule is a file without defaults, but with what decides whether it takes anything", () => {
  expect(ruleYaml(RULE)).toBe(`name: workqueue
summary: series that ask
archive: lkml
paths: [kernel/workqueue.c, fs/xfs/]
subjects: [less locks]
authors: ["@example.org"]
only_if_asked: true
targets: [xfs-fsync@xeon-2s]
tree: linus
owner: list-bot
commanders: [kay@example.org]
minutes_a_day: 240
quiet_hours: [{begins: "22:00", ends: "06:00"}]
`);
});

test("reasons and heads are counted, the most frequent reason first", () => {
  expect(reasonCounts({ incomplete: 1, paths: 12 })).toBe("12 other files, 1 incomplete");
  expect(reasonCounts({})).toBe("");
  expect(headCounts({ skipped: 2, measured: 3 })).toBe("3 measured, 2 skipped");
  expect(headCounts({})).toBe("no heads");
});

test("only filters that are set are sent, and a preview has at most 30 days", () => {
  expect(toDecisionFilters({ state: "", reason: "", cursor: "" }, 5)).toEqual({ limit: 5 });
  expect(toDecisionFilters({ state: "waiting", reason: "quota", cursor: "9" }, 5)).toEqual({
    limit: 5,
    state: "waiting",
    reason: "quota",
    cursor: "9",
  });
  expect(toHeadFilters({ state: "", ref: "v6.*", cursor: "" }, 5)).toEqual({ limit: 5, ref: "v6.*" });
  expect(["7", "31", "0", undefined].map(days => RULE_PARAMS.days.read(days))).toEqual([7, null, null, null]);
});

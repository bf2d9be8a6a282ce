import { expect, test } from "vitest";
import type { Failure } from "@/api/types";
import { Log } from "@/console/log";
import { errorLines, findLines, warningText } from "./buildlog";
import { diffRuns, splitMbox } from "./patch";
import { submissionSearch } from "./search";
import { pinned, resolveSelection, toBoot, toBuild, toSeries } from "./selection";
import {
  applyText,
  attemptName,
  bootName,
  bootsByBlock,
  buildText,
  cellsOf,
  elapsed,
  waitText,
} from "./steps";
import { blockOf, bootOf, buildOf, runOf, stepsOf } from "./testing";

const nothing = submissionSearch.defaults;
const failure: Failure = {
  kind: "kernel",
  summary: "panic",
  excerpt: "",
  advice: "",
  of_variant: false,
  stack: [],
  defect: "",
};
const finished = { ...stepsOf().submission, state: "finished", outcome: "failed" } as const;
const boots = [bootOf(31, 0, "baseline"), bootOf(32, 0, "candidate")];

test("the default selection is the active step", () => {
  const applying = stepsOf();
  applying.apply = { ...applying.apply, state: "running", outcome: null };
  expect(resolveSelection(nothing, applying)).toEqual({ kind: "series" });

  const builds = [buildOf(11, "baseline"), buildOf(12, "candidate", { state: "running", outcome: null })];
  const waiting = runOf(21, { state: "waiting", outcome: null });
  expect(resolveSelection(nothing, stepsOf({ builds, runs: [waiting] }))).toMatchObject({
    build: { id: 12 },
  });

  const running = runOf(22, { state: "running", outcome: null, boots });
  expect(resolveSelection(nothing, stepsOf({ runs: [runOf(21), running] }))).toMatchObject({
    run: { id: 22 },
    boot: { id: 32 },
    pinned: false,
  });

  const queued = runOf(21, { state: "queued", outcome: null });
  expect(resolveSelection(nothing, stepsOf({ runs: [queued] }))).toMatchObject({
    run: { id: 21 },
    boot: null,
  });
});

test("the default selection of a failed submission is the failed step", () => {
  const build = buildOf(12, "candidate", { outcome: "failed", failure: { ...failure, kind: "user" } });
  expect(resolveSelection(nothing, stepsOf({ submission: finished, builds: [build] }))).toMatchObject({
    build: { id: 12 },
  });

  const failed = runOf(22, {
    outcome: "failed",
    failure,
    boots: [...boots, bootOf(33, 1, "candidate", { outcome: "failed", failure }), bootOf(34, 2, "baseline")],
  });
  expect(
    resolveSelection(nothing, stepsOf({ submission: finished, runs: [runOf(21), failed] })),
  ).toMatchObject({
    run: { id: 22 },
    boot: { id: 33 },
  });
});

test("search parameters select a step; unknown IDs fall back to the default", () => {
  const steps = stepsOf({ runs: [runOf(21, { boots })] });
  expect(resolveSelection({ ...nothing, ...toSeries() }, steps)).toEqual({ kind: "series" });
  expect(resolveSelection({ ...nothing, ...toBuild(11) }, steps)).toMatchObject({ build: { id: 11 } });
  const boot = resolveSelection({ ...nothing, ...toBoot(21, 31, 5) }, steps);
  expect(boot).toMatchObject({ boot: { id: 31 }, pinned: true });
  expect(pinned(boot)).toEqual({ step: "", build: null, run: 21, boot: 31, line: null, find: "" });
  expect(resolveSelection({ ...nothing, ...toBoot(99, 98) }, steps)).toEqual(
    resolveSelection(nothing, steps),
  );
});

test("step texts describe progress, result and failure", () => {
  const { apply } = stepsOf();
  expect(applyText(apply, true)).toBe("2 patches on 1a2b3c4d5e6f (6.12.1); checkpatch: clean");
  expect(applyText({ ...apply, checkpatch_errors: 1, checkpatch_warnings: 2 }, true)).toContain(
    "1 error, 2 warnings",
  );
  const skipped = { ...apply, checkpatch_skipped: "the base tree has no scripts/checkpatch.pl" };
  expect(applyText(skipped, true)).toContain(
    "checkpatch: not run, because the base tree has no scripts/checkpatch.pl",
  );
  expect(applyText({ ...skipped, checkpatch_errors: 1 }, true)).toContain("1 error; incomplete, because the");
  expect(applyText(apply, false)).toBe("1a2b3c4d5e6f (6.12.1)");
  expect(applyText({ ...apply, failure: { ...failure, summary: "patch 2 does\nnot apply" } }, true)).toBe(
    "patch 2 does not apply",
  );
  expect(buildText(buildOf(1, "candidate", { new_warnings: 1 }))).toBe("6.12.0-wqlab, 1 new warning");
  expect(buildText(buildOf(1, "baseline", { reused: true }))).toBe("reused");
  expect(waitText(runOf(1, { state: "queued", queue_position: 2 }), "one run ahead")).toBe(
    "position 2 in the queue: one run ahead",
  );
  expect(waitText(runOf(1, { attempts: 2 }), "")).toBe("tiny-1, attempt 2");
});

test("a run of traced boots can be selected, and is the one that runs", () => {
  const steps = stepsOf({
    runs: [runOf(21, { state: "finished" })],
    traced_runs: [runOf(22, { state: "running" })],
  });
  expect(resolveSelection(nothing, steps)).toMatchObject({ kind: "run", run: { id: 22 } });
  expect(resolveSelection({ ...nothing, run: 22 }, steps)).toMatchObject({ kind: "run", run: { id: 22 } });
});

test("elapsed time stops when the step ends", () => {
  const now = new Date("2026-11-21T10:02:00Z");
  expect(elapsed({ started_at: null, finished_at: null }, now)).toBe("");
  expect(elapsed({ started_at: "2026-11-21T10:00:30Z", finished_at: null }, now)).toBe("1:30");
  expect(elapsed({ started_at: "2026-11-21T10:00:30Z", finished_at: "2026-11-21T10:00:35Z" }, now)).toBe(
    "0:05",
  );
});

test("cells show the last attempt's boots in boot order", () => {
  const again = blockOf(0, { arms: ["candidate", "baseline"], state: "running", attempt: 1, discarded: 1 });
  const all = [
    bootOf(1, 0, "candidate", { position: 0, outcome: "failed", valid: false }),
    bootOf(2, 0, "candidate", { position: 0, attempt: 1 }),
    bootOf(3, 0, "baseline", { position: 1, attempt: 1, state: "measuring", outcome: null }),
  ];
  const cells = cellsOf(again, bootsByBlock(all).get(0) ?? []);
  expect(cells.map(cell => [cell.arm, cell.state, cell.boot?.id])).toEqual([
    ["candidate", "passed", 2],
    ["baseline", "measuring", 3],
  ]);
  expect(cellsOf(blockOf(1, { state: "pending", attempt: null }), []).map(cell => cell.state)).toEqual([
    "pending",
    "pending",
  ]);
  expect(cellsOf(blockOf(1, { state: "lost", attempt: null }), [])[0]?.state).toBe("lost");
  expect(cellsOf(blockOf(1, { state: "not_needed", attempt: null }), [])[0]?.state).toBe("not_needed");
});

test("boots and attempts have the same names as in the report", () => {
  expect(bootName({ block: 2, arm: "candidate", attempt: 0 })).toBe("3B");
  expect(bootName({ block: 2, arm: "patch-1", attempt: 0 })).toBe("3C");
  expect(bootName({ block: 2, arm: "patch-15", attempt: 0 })).toBe("3Q");
  expect(bootName({ block: 0, arm: "baseline", attempt: 1 })).toBe("1A, attempt 2");
  const attempt = {
    what: "run",
    run_id: 1,
    build_id: null,
    plan: "xfs-fsync",
    device_type: "tiny",
    device: "tiny-1",
    block: 0,
    arm: "candidate",
    attempt: 1,
    failure,
    at: null,
  } as const;
  expect(attemptName(attempt)).toBe("xfs-fsync on tiny-1, block 1, candidate, attempt 2");
  expect(attemptName({ ...attempt, block: null, arm: null })).toBe("xfs-fsync on tiny-1, attempt 1");
  expect(attemptName({ ...attempt, what: "build", build_id: 7, device: "host/1" })).toBe(
    "build 7 by host/1, attempt 1",
  );
});

test("errors and new warnings are located in the log", () => {
  const log = new Log();
  log.append(
    new TextEncoder().encode(
      [
        "  CC      kernel/workqueue.o",
        "../src/kernel/workqueue.c:5:9: error: expected ';' before 'x'",
        "    5 |  int y",
        "/src/kernel/workqueue.c:9:1: warning: unused variable 'z' [-Wunused-variable]",
        "make[3]: *** [kernel/workqueue.o] Error 1",
        "make[3]: *** Waiting for unfinished jobs....",
      ].join("\n"),
    ),
  );
  const excerpt = [
    "kernel/workqueue.c:5:9: error: expected ';' before 'x'",
    "    5 |  int y",
    "make[3]: *** [kernel/workqueue.o] Error 1",
    "make[3]: *** Waiting for unfinished jobs....",
  ].join("\n");
  expect(findLines(log, errorLines(excerpt))).toEqual([2, 5]);
  const warning = {
    where: "kernel/workqueue.c:9:1",
    text: "unused variable 'z'",
    option: "-Wunused-variable",
  };
  expect(findLines(log, [warningText(warning)])).toEqual([4]);
  expect(findLines(log, ["nowhere"])).toEqual([]);
});

test("an mbox is split into mails and a mail into runs of the same kind", () => {
  const mail = (subject: string) =>
    `From ${"0".repeat(40)} Mon Sep 17 00:00:00 2001\nFrom: A\nSubject: ${subject}\n\nFrom here on it is prose.\n---\n` +
    `diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n+more\n same\n-- \n2.43.0\n`;
  const mails = splitMbox(mail("one") + mail("two"));
  expect(mails.map(each => /Subject: (.*)/.exec(each)?.[1])).toEqual(["one", "two"]);
  const runs = diffRuns(mails[0] as string);
  expect(runs.map(run => run.kind)).toEqual(["text", "file", "hunk", "removed", "added", "text"]);
  expect(runs.find(run => run.kind === "added")?.text).toBe("+new\n+more\n");
  expect(runs.map(run => run.text).join("")).toBe(`${mails[0]}\n`);
});

import { expect, test } from "vitest";
import type { Report, TargetReport } from "@/api/types";
import { makeReport } from "@/testing/report";
import { nearest, partChoices } from "./cellParts";
import { filterCells } from "./filter";
import {
  bisectionOf,
  type Cell,
  cellsOf,
  commandLines,
  firstCell,
  judgedMetrics,
  matricesOf,
  publishedOf,
  sidesOf,
  studiesOf,
  tradeoffOf,
} from "./model";
import { reportSearch } from "./search";

const report = makeReport();
const cells = cellsOf(report);
const [xeon, tiny] = report.targets as [TargetReport, TargetReport];
const cell = (key: string) => cells.find(each => each.key === key) as Cell;

test("each comparison has a unique, readable key", () => {
  expect(new Set(cells.map(({ key }) => key)).size).toBe(cells.length);
  expect(cell("1/HIGH/busy/scope=cache")).toBeDefined();
  expect(cell("1/HIGH/busy/scope=cache@candidate")?.of.question).toBe("setting");
});

test("the default comparison is the one with the worst verdict", () => {
  expect(firstCell(cells)?.key).toBe("1/HIGH/busy/scope=system");
  expect(firstCell([])).toBeUndefined();
  const regressed: Report = {
    ...report,
    targets: [
      xeon,
      {
        ...tiny,
        verdict: "regression",
        comparisons: tiny.comparisons.map(of => ({
          ...of,
          verdict: of.scenario === "LOW" ? "regression" : of.verdict,
        })),
      },
    ],
  };
  expect(firstCell(cellsOf(regressed))?.key).toBe("2/LOW/locality/scope=system");
});

test("only a difference of two commits of a tree can be bisected", () => {
  const regressed = cell("1/HIGH/busy/scope=system");
  const changed = { ...regressed, of: { ...regressed.of, verdict: "regression" as const } };
  expect(bisectionOf(report, changed)).toBeNull(); // a series of mails
  const commits = { baseline: "a".repeat(40), candidate: "b".repeat(40), ref: "for-next" };
  const { submission } = report;
  const series = { git: null, mbox: null, thread: null, commits };
  const pair: Report = {
    ...report,
    submission: { ...submission, state: "finished", request: { ...submission.request, series } },
  };
  expect(bisectionOf(pair, changed)).toMatchObject({
    good: commits.baseline,
    bad: commits.candidate,
    ref: "for-next",
    metric: "busy",
    type: "xeon-2s",
    submission: submission.id,
  });
  const same = { ...changed, of: { ...changed.of, verdict: "equivalent" as const } };
  expect(bisectionOf(pair, same)).toBeNull();
});

test("a matrix has a row per device and a column per scenario and setting", () => {
  const [kernels, onBaseline, onCandidate] = matricesOf(report, cells, "");
  expect(kernels?.rows.map(row => [row.target.device_type, row.metric, row.evidence])).toEqual([
    ["xeon-2s", "busy", "performance"],
    ["tiny", "locality", "mechanism"],
  ]);
  expect(kernels?.scenarios).toEqual([
    { name: "HIGH", summary: "HIGH load", settings: ["scope=system", "scope=cache"] },
    { name: "LOW", summary: "LOW load", settings: ["scope=system", "scope=cache"] },
  ]);
  expect(kernels?.rows[1]?.cells.map(each => each?.key)).toEqual([
    "2/HIGH/locality/scope=system",
    "2/HIGH/locality/scope=cache",
    "2/LOW/locality/scope=system",
    "2/LOW/locality/scope=cache",
  ]);
  expect([onBaseline?.kernel, onCandidate?.kernel, onBaseline?.reference]).toEqual([
    "baseline",
    "candidate",
    "scope=system",
  ]);
  expect(matricesOf(report, cells, "busy")[0]?.rows[1]?.evidence).toBe("none");
  expect(judgedMetrics(cells)).toEqual(["locality", "busy"]);
});

test("a device without comparisons keeps its row", () => {
  const without = { ...report, targets: [xeon, { ...tiny, comparisons: [] }] };
  const [kernels] = matricesOf(without, cellsOf(without), "");
  expect(kernels?.rows[1]).toMatchObject({ metric: null, evidence: null });
});

test("boots belong to two kernels, or to two settings on one kernel", () => {
  const kernels = sidesOf(cell("1/HIGH/busy/scope=cache"));
  expect(kernels.baseline.name).toBe("baseline");
  expect(kernels.candidate.dots.map(dot => dot.value)).toEqual([60, 60.1, 60.2, 60.3, 60.4, 60.5]);
  const settings = sidesOf(cell("1/HIGH/busy/scope=cache@candidate"));
  expect([settings.baseline.name, settings.candidate.name]).toEqual(["scope=system", "scope=cache"]);
  expect(settings.baseline.dots[0]?.value).toBe(40);
});

test("a study starts with the reference and the primary metric", () => {
  const [onBaseline] = studiesOf(xeon, cells);
  expect(onBaseline?.metrics.map(each => [each.name, each.evidence])).toEqual([
    ["busy", "performance"],
    ["locality", "mechanism"],
  ]);
  expect(
    onBaseline?.rows.map(row => [row.scenario, row.setting, row.isReference, row.figures.get("busy")?.mean]),
  ).toEqual([
    ["HIGH", "scope=system", true, 40],
    ["HIGH", "scope=cache", false, 42.5],
    ["LOW", "scope=system", true, 40],
    ["LOW", "scope=cache", false, 42.5],
  ]);
});

test("work conservation is plotted only if it is evidence", () => {
  const [study] = studiesOf(xeon, cells);
  const [emulated] = studiesOf(tiny, cells);
  const onHardware = study && tradeoffOf(xeon, study);
  const onEmulated = emulated && tradeoffOf(tiny, emulated);
  expect(onHardware?.dots).toHaveLength(2 * 2 * 6);
  expect(onHardware?.dots.every(dot => dot.conservation !== null)).toBe(true);
  expect(onEmulated?.conservation.evidence).toBe("none");
  expect(onEmulated?.dots.every(dot => dot.conservation === null)).toBe(true);
  expect(study && tradeoffOf({ ...xeon, plan: { ...xeon.plan, tradeoff: null } }, study)).toBeNull();
});

test("published figures are matched with measurements of the same setting", () => {
  const reference = {
    kernel: "v6.5",
    machine: "3900X",
    source: "LKML",
    mean: 1159.4,
    stddev: 1.34,
    n: 5,
    relative_to: null,
  };
  const published = publishedOf({
    ...xeon,
    comparisons: xeon.comparisons.filter(of => of.question === "setting" && of.kernel === "baseline"),
    references: [
      { ...reference, scenario: "HIGH", setting: "scope=system", metric: "busy" },
      { ...reference, scenario: "HIGH", setting: "scope=cache", metric: "busy" },
      { ...reference, scenario: "MED", setting: "scope=cache", metric: "busy" },
    ],
  });
  expect(published.map(row => row.measured?.mean ?? null)).toEqual([40, 42.5, null]);
});

test("published changes are matched with the same change on one kernel", () => {
  const origin = { kernel: "v5.4", machine: "one", source: "LKML" };
  const change = { ...origin, mean: 84.7, stddev: null, n: null, scenario: "HIGH", metric: "busy" };
  const references = [
    { ...change, setting: "scope=cache", relative_to: "scope=system" },
    { ...change, setting: "scope=cache", relative_to: "scope=numa" },
  ];
  const study = xeon.comparisons.filter(of => of.question === "setting" && of.metric === "busy");
  const rows = publishedOf({ ...xeon, references, comparisons: study });
  expect(rows.map(row => [row.measured?.mean ?? null, row.unit])).toEqual([
    [6.25, "%"],
    [null, "%"],
  ]);
  // Each of the two settings was measured on a different kernel.
  const apart = study.map(of =>
    of.kernel === "baseline" ? { ...of, candidate: null } : { ...of, baseline: null },
  );
  expect(publishedOf({ ...xeon, references, comparisons: apart }).map(row => row.measured)).toEqual([
    null,
    null,
  ]);
});

test("command lines omit the lab's parameters and are merged if equal", () => {
  expect(
    commandLines({
      baseline: "panic=0 wqlab.ip=192.0.2.1/24 wqlab.token=a nokaslr",
      candidate: "panic=0 wqlab.token=b nokaslr",
    }),
  ).toEqual([{ of: "both kernels", text: "panic=0 nokaslr", shortened: true }]);
  expect(commandLines({ baseline: "quiet", candidate: "debug" }).map(line => line.of)).toEqual([
    "baseline",
    "candidate",
  ]);
});

test("filters match properties; search words match names", () => {
  const filter = reportSearch.defaults;
  expect(filterCells(cells, filter)).toHaveLength(cells.length);
  expect(
    filterCells(cells, { ...filter, topology: "tiny", evidence: "none" }).every(
      ({ of }) => of.metric === "busy",
    ),
  ).toBe(true);
  expect(
    filterCells(cells, { ...filter, q: "BUSY high" }).every(
      ({ of }) => of.metric === "busy" && of.scenario === "HIGH",
    ),
  ).toBe(true);
  expect(filterCells(cells, { ...filter, verdict: ["no_evidence"] })).toHaveLength(
    cells.filter(({ of }) => of.verdict === "no_evidence").length,
  );
  expect(filterCells(cells, { ...filter, q: "nothing-like-it" })).toEqual([]);
});

test("changing one part of a comparison keeps the others if possible", () => {
  const chosen = cell("1/LOW/locality/scope=cache@baseline");
  expect(nearest(cells, chosen, "target", "2").key).toBe("2/LOW/locality/scope=cache@baseline");
  expect(nearest(cells, chosen, "metric", "busy").key).toBe("1/LOW/busy/scope=cache@baseline");
  expect(nearest(cells, chosen, "setting", "scope=system").of.setting).toBe("scope=system");
  const settings = partChoices(cells, chosen).find(each => each.place === "setting");
  // In a settings study the reference is not compared with itself.
  expect(settings?.options.map(each => each.value)).toEqual(["scope=cache"]);
});

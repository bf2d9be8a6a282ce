import { expect, test } from "vitest";
import type { Report, TargetReport } from "@/api/types";
import { makeReport } from "@/testing/report";
import { filtered } from "./filter";
import {
  acrossTopologies,
  besides,
  type Cell,
  cellsOf,
  commandLines,
  firstCell,
  judgedMetrics,
  matricesOf,
  publishedOf,
  sidesOf,
  studiesOf,
  tradeOf,
} from "./model";
import { nearest, places } from "./pick";
import { reportSearch } from "./route";

const report = makeReport();
const cells = cellsOf(report);
const [xeon, tiny] = report.targets as [TargetReport, TargetReport];
const cell = (key: string) => cells.find(each => each.key === key) as Cell;

test("each comparison has an address of its own, which says what it is", () => {
  expect(new Set(cells.map(({ key }) => key)).size).toBe(cells.length);
  expect(cell("1/HIGH/busy/scope=cache")).toBeDefined();
  expect(cell("1/HIGH/busy/scope=cache@candidate")?.of.question).toBe("setting");
});

test("a page that names no comparison shows what carries the worst verdict", () => {
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

test("a matrix has a row for each device with its own primary metric, and a column for each scenario and setting", () => {
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

test("a device where nothing was compared keeps its row", () => {
  const without = { ...report, targets: [xeon, { ...tiny, comparisons: [] }] };
  const [kernels] = matricesOf(without, cellsOf(without), "");
  expect(kernels?.rows[1]).toMatchObject({ metric: null, evidence: null });
});

test("the same question is found on every topology, the same boots' other figures with what explains first", () => {
  const chosen = cell("1/HIGH/locality/scope=cache@baseline");
  expect(acrossTopologies(cells, chosen).map(each => each.key)).toEqual([
    "1/HIGH/locality/scope=cache@baseline",
    "2/HIGH/locality/scope=cache@baseline",
  ]);
  expect(besides(cells, chosen).map(each => each.of.metric)).toEqual(["counter-0", "counter-1", "busy"]);
});

test("boots are those of the two things that are compared: two kernels, or two settings on one kernel", () => {
  const kernels = sidesOf(cell("1/HIGH/busy/scope=cache"));
  expect(kernels.baseline.name).toBe("baseline");
  expect(kernels.candidate.dots.map(dot => dot.value)).toEqual([60, 60.1, 60.2, 60.3, 60.4, 60.5]);
  const settings = sidesOf(cell("1/HIGH/busy/scope=cache@candidate"));
  expect([settings.baseline.name, settings.candidate.name]).toEqual(["scope=system", "scope=cache"]);
  expect(settings.baseline.dots[0]?.value).toBe(40);
});

test("a study has the reference first, its primary metric before what it trades", () => {
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

test("the other half of a tradeoff is placed where it is evidence only", () => {
  const [study] = studiesOf(xeon, cells);
  const [emulated] = studiesOf(tiny, cells);
  const onHardware = study && tradeOf(xeon, study);
  const onEmulated = emulated && tradeOf(tiny, emulated);
  expect(onHardware?.dots).toHaveLength(2 * 2 * 6);
  expect(onHardware?.dots.every(dot => dot.conservation !== null)).toBe(true);
  expect(onEmulated?.conservation.evidence).toBe("none");
  expect(onEmulated?.dots.every(dot => dot.conservation === null)).toBe(true);
  expect(study && tradeOf({ ...xeon, plan: { ...xeon.plan, tradeoff: null } }, study)).toBeNull();
});

test("a published figure stands beside what was measured of the same setting, the reference setting too", () => {
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

test("a published change stands beside the same change, on one kernel", () => {
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
  // The candidate alone has the one setting, the baseline the other.
  const apart = study.map(of =>
    of.kernel === "baseline" ? { ...of, candidate: null } : { ...of, baseline: null },
  );
  expect(publishedOf({ ...xeon, references, comparisons: apart }).map(row => row.measured)).toEqual([
    null,
    null,
  ]);
});

test("command lines are shown without what the lab adds to each boot, once where the arms agree", () => {
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

test("filters narrow by what a comparison is; every word that is searched is somewhere in its names", () => {
  const filter = reportSearch.defaults;
  expect(filtered(cells, filter)).toHaveLength(cells.length);
  expect(
    filtered(cells, { ...filter, topology: "tiny", evidence: "none" }).every(
      ({ of }) => of.metric === "busy",
    ),
  ).toBe(true);
  expect(
    filtered(cells, { ...filter, q: "BUSY high" }).every(
      ({ of }) => of.metric === "busy" && of.scenario === "HIGH",
    ),
  ).toBe(true);
  expect(filtered(cells, { ...filter, verdict: ["no_evidence"] })).toHaveLength(
    cells.filter(({ of }) => of.verdict === "no_evidence").length,
  );
  expect(filtered(cells, { ...filter, q: "nothing-like-it" })).toEqual([]);
});

test("changing one part of a comparison keeps the others as far as they exist", () => {
  const chosen = cell("1/LOW/locality/scope=cache@baseline");
  expect(nearest(cells, chosen, "target", "2").key).toBe("2/LOW/locality/scope=cache@baseline");
  expect(nearest(cells, chosen, "metric", "busy").key).toBe("1/LOW/busy/scope=cache@baseline");
  expect(nearest(cells, chosen, "setting", "scope=system").of.setting).toBe("scope=system");
  const settings = places(cells, chosen).find(each => each.place === "setting");
  // Within a settings study the reference is not compared with itself.
  expect(settings?.options.map(each => each.value)).toEqual(["scope=cache"]);
});

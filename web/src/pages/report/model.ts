/**
 * What of a report is shown where: looks up, groups and orders what the server computed. No figure, verdict or sentence
 * is made here.
 */
import type {
  Arm,
  ArmSummary,
  Comparison,
  Evidence,
  Question,
  Reference,
  Report,
  TargetReport,
  Verdict,
} from "@/api/types";
import { BY_WEIGHT } from "@/lib/words";

/** One comparison and the target it belongs to. */
export interface Cell {
  key: string;
  target: TargetReport;
  of: Comparison;
  /** The means and spreads that stand in one column with it: they share their decimal places, as in the mailed report. */
  column: readonly (ArmSummary | null)[];
}

/** A comparison's name in an address: `2/HIGH/local_l3_share/scope=cache,strict=1@baseline`; `@` for a settings study. */
export function cellKey(run: number, of: Comparison): string {
  const kernel = of.question === "setting" ? `@${of.kernel ?? ""}` : "";
  return `${run}/${of.scenario}/${of.metric}${of.setting || kernel ? `/${of.setting}${kernel}` : ""}`;
}

/** All comparisons of a report, in its order. */
export function cellsOf(report: Report): Cell[] {
  const columns = new Map<string, (ArmSummary | null)[]>();
  return report.targets.flatMap(target =>
    target.comparisons.map(of => {
      const key = cellKey(target.run_id, of);
      const name = columnName(key, target.run_id, of);
      const column = columns.get(name) ?? [];
      columns.set(name, column);
      column.push(of.baseline, of.candidate);
      return { key, target, of, column };
    }),
  );
}

function columnName(key: string, run: number, of: Comparison): string {
  if (of.question === "setting") return `${run} ${of.kernel} ${of.scenario} ${of.metric}`;
  return of.role === "explanatory" || of.evidence === "none" ? key : `${run} ${of.metric}`;
}

/** What a page shows that names no cell: of the worst target the comparison that carries its verdict. */
export function firstCell(cells: readonly Cell[]): Cell | undefined {
  const primaries = cells.filter(({ of }) => of.role === "primary");
  const carrying = primaries
    .filter(({ of, target }) => of.verdict === target.verdict)
    .toSorted((a, b) => weight(a.target.verdict) - weight(b.target.verdict));
  return carrying[0] ?? primaries[0] ?? cells[0];
}

function weight(verdict: Verdict): number {
  return BY_WEIGHT.indexOf(verdict);
}

// --- the matrix ---------------------------------------------------------------------------------------------------

export interface MatrixRow {
  target: TargetReport;
  /** Null where nothing was compared. */
  metric: string | null;
  evidence: Evidence | null;
  /** One per column; missing where this device has no such comparison. */
  cells: (Cell | undefined)[];
}

/** One plan and one question: devices by scenarios and settings. */
export interface Matrix {
  id: string;
  plan: string;
  question: Question;
  /** The kernel that settings were compared on. */
  kernel: Arm | null;
  /** The setting that others are compared with; empty for kernels. */
  reference: string;
  scenarios: { name: string; summary: string; settings: string[] }[];
  rows: MatrixRow[];
}

/** `metric` "": of each device its primary one. */
export function matricesOf(report: Report, cells: readonly Cell[], metric: string): Matrix[] {
  const chosen = cells.filter(({ of }) => (metric ? of.metric === metric : of.role === "primary"));
  const plans = [...new Set(report.targets.map(target => target.plan.name))];
  return plans.flatMap(plan => {
    const targets = report.targets.filter(target => target.plan.name === plan);
    const groups = Map.groupBy(
      chosen.filter(({ target }) => target.plan.name === plan),
      ({ of }) => `${of.question} ${of.kernel ?? ""}`,
    );
    return [...groups.values()].map(group => matrix(plan, targets, group));
  });
}

function matrix(plan: string, targets: readonly TargetReport[], group: readonly Cell[]): Matrix {
  const { question, kernel, reference } = (group[0] as Cell).of;
  const summaries = new Map(targets[0]?.plan.scenarios.map(each => [each.name, each.summary]));
  const scenarios = [...Map.groupBy(group, ({ of }) => of.scenario)].map(([name, of]) => ({
    name,
    summary: summaries.get(name) ?? "",
    settings: [...new Set(of.map(each => each.of.setting))],
  }));
  const at = new Map(group.map(cell => [place(cell.target.run_id, cell.of.scenario, cell.of.setting), cell]));
  const rows = targets.map(target => {
    const of = scenarios.flatMap(({ name, settings }) =>
      settings.map(setting => at.get(place(target.run_id, name, setting))),
    );
    const first = of.find(cell => cell !== undefined);
    return { target, metric: first?.of.metric ?? null, evidence: first?.of.evidence ?? null, cells: of };
  });
  return {
    id: `${plan} ${question} ${kernel ?? ""}`,
    plan,
    question,
    kernel: kernel ?? null,
    reference: question === "setting" ? reference : "",
    scenarios,
    rows,
  };
}

function place(run: number, scenario: string, setting: string): string {
  return `${run}\n${scenario}\n${setting}`;
}

/** Metrics that somebody judges on some device, in the plans' order: what a matrix can show. */
export function judgedMetrics(cells: readonly Cell[]): string[] {
  return [...new Set(cells.filter(({ of }) => of.role !== "explanatory").map(({ of }) => of.metric))];
}

// --- one cell -----------------------------------------------------------------------------------------------------

/** The same question on every topology, in the report's order. */
export function acrossTopologies(cells: readonly Cell[], { target, of }: Cell): Cell[] {
  return cells.filter(
    each =>
      each.target.plan.name === target.plan.name &&
      each.of.scenario === of.scenario &&
      each.of.setting === of.setting &&
      each.of.metric === of.metric &&
      sameQuestion(each.of, of),
  );
}

/** What else the same boots say: every other metric of the same scenario and setting, counters that explain first. */
export function besides(cells: readonly Cell[], { target, of }: Cell): Cell[] {
  const order = ["explanatory", "secondary", "primary"];
  return cells
    .filter(
      each =>
        each.target === target &&
        each.of.scenario === of.scenario &&
        each.of.setting === of.setting &&
        each.of.metric !== of.metric &&
        sameQuestion(each.of, of),
    )
    .toSorted((a, b) => order.indexOf(a.of.role) - order.indexOf(b.of.role));
}

function sameQuestion(a: Comparison, b: Comparison): boolean {
  return a.question === b.question && a.kernel === b.kernel;
}

/** One boot's value. */
export interface BootDot {
  block: number;
  value: number;
}

/** The two things compared, and each boot's value of them. */
export interface Sides {
  baseline: { name: string; dots: BootDot[] };
  candidate: { name: string; dots: BootDot[] };
}

export function sidesOf({ target, of }: Cell): Sides {
  const dots = (arm: Arm, setting: string) =>
    target.values
      .filter(
        each =>
          each.arm === arm &&
          each.setting === setting &&
          each.scenario === of.scenario &&
          each.metric === of.metric,
      )
      .map(({ block, value }) => ({ block, value }))
      .toSorted((a, b) => a.block - b.block);
  if (of.question === "kernel") {
    return {
      baseline: { name: "baseline", dots: dots("baseline", of.setting) },
      candidate: { name: "candidate", dots: dots("candidate", of.setting) },
    };
  }
  const kernel = of.kernel ?? "baseline";
  return {
    baseline: { name: of.reference, dots: dots(kernel, of.reference) },
    candidate: { name: of.setting, dots: dots(kernel, of.setting) },
  };
}

// --- settings -----------------------------------------------------------------------------------------------------

/** One kernel's settings on one device: a row per scenario and setting, the reference first. */
export interface Study {
  kernel: Arm | null;
  reference: string;
  /** The metric that is judged; others stand beside it. */
  primary: string;
  /** In the order of their columns, the primary first. */
  metrics: StudyMetric[];
  rows: StudyRow[];
}

export interface StudyMetric {
  name: string;
  unit: string;
  summary: string;
  evidence: Evidence;
}

export interface StudyRow {
  key: string;
  scenario: string;
  setting: string;
  isReference: boolean;
  /** Metric -> mean and spread of this setting. */
  figures: Map<string, ArmSummary | null>;
  /** Of the primary metric; null for the reference itself. */
  primary: Cell | null;
}

export function studiesOf(target: TargetReport, cells: readonly Cell[]): Study[] {
  const asked = cells.filter(({ of, target: its }) => its === target && of.question === "setting");
  return [...Map.groupBy(asked, ({ of }) => of.kernel ?? null)].flatMap(([kernel, group]) => {
    const first = group.find(({ of }) => of.role === "primary");
    return first ? [study(target, kernel, first.of, group)] : [];
  });
}

function study(target: TargetReport, kernel: Arm | null, first: Comparison, group: readonly Cell[]): Study {
  const { tradeoff, metrics } = target.plan;
  // What others published of it, and what its settings trade: the columns that a reader compares.
  const wanted = new Set([
    first.metric,
    ...target.references.map(each => each.metric),
    ...(tradeoff ? [tradeoff.work_conservation, tradeoff.locality] : []),
  ]);
  const shown = [...wanted].flatMap(name => {
    const of = group.find(each => each.of.metric === name)?.of;
    const summary = metrics.find(each => each.name === name)?.summary ?? "";
    return of ? [{ name, unit: of.unit, summary, evidence: of.evidence }] : [];
  });
  const rows = [...Map.groupBy(group, ({ of }) => of.scenario)].flatMap(([scenario, of]) => {
    const settings = [first.reference, ...new Set(of.map(each => each.of.setting))];
    return settings.map((setting): StudyRow => {
      const isReference = setting === first.reference;
      const its = of.filter(each => isReference || each.of.setting === setting);
      const figures = new Map(
        shown.map(({ name }) => {
          const found = its.find(each => each.of.metric === name)?.of;
          return [name, (isReference ? found?.baseline : found?.candidate) ?? null];
        }),
      );
      const primary = isReference ? null : (its.find(each => each.of.metric === first.metric) ?? null);
      return { key: `${scenario} ${setting}`, scenario, setting, isReference, figures, primary };
    });
  });
  return { kernel, reference: first.reference, primary: first.metric, metrics: shown, rows };
}

/** One boot of one setting, placed by what its settings trade. `conservation` null: no evidence here, or not measured. */
export interface TradeDot {
  scenario: string;
  setting: string;
  block: number;
  locality: number;
  conservation: number | null;
}

export interface Trade {
  locality: StudyMetric;
  conservation: StudyMetric;
  dots: TradeDot[];
}

/** The plan's tradeoff as this kernel's boots show it; null where the plan names none or its locality is no evidence. */
export function tradeOf(target: TargetReport, of: Study): Trade | null {
  const { tradeoff } = target.plan;
  const metric = (name: string | undefined) => of.metrics.find(each => each.name === name);
  const locality = metric(tradeoff?.locality);
  const conservation = metric(tradeoff?.work_conservation);
  if (!locality || !conservation || locality.evidence === "none") return null;
  const kernel = of.kernel ?? "baseline";
  const values = target.values.filter(each => each.arm === kernel);
  const busy = new Map(
    conservation.evidence === "none"
      ? []
      : values
          .filter(each => each.metric === conservation.name)
          .map(each => [`${each.scenario}\n${each.setting}\n${each.block}`, each.value] as const),
  );
  const dots = values
    .filter(each => each.metric === locality.name)
    .map(({ scenario, setting, block, value }) => ({
      scenario,
      setting,
      block,
      locality: value,
      conservation: busy.get(`${scenario}\n${setting}\n${block}`) ?? null,
    }));
  return dots.length > 0 ? { locality, conservation, dots } : null;
}

// --- published figures --------------------------------------------------------------------------------------------

export interface PublishedRow {
  key: string;
  reference: Reference;
  /** What this lab measured of the same scenario, setting and metric, or of the same change; null where it did not. */
  measured: { mean: number; stddev?: number | null } | null;
  unit: string;
  evidence: Evidence | null;
}

/** Published figures and what was measured here of the same thing, of two kernels on the baseline. They are in no computation. */
export function publishedOf(target: TargetReport): PublishedRow[] {
  return target.references.map(reference => {
    const { scenario, setting, metric, relative_to: base, source } = reference;
    const cells = target.comparisons.filter(of => of.scenario === scenario && of.metric === metric);
    const kernel = (["baseline", "candidate"] as const).find(
      each => armOf(cells, each, setting) && (base == null || armOf(cells, each, base)?.mean),
    );
    const measured = kernel ? armOf(cells, kernel, setting) : null;
    const from = kernel && base != null ? armOf(cells, kernel, base) : null;
    return {
      key: `${scenario} ${setting} ${base ?? ""} ${metric} ${source}`,
      reference,
      measured: measured && from ? { mean: 100 * (measured.mean / from.mean - 1) } : measured,
      unit: base == null ? (target.plan.metrics.find(each => each.name === metric)?.unit ?? "") : "%",
      evidence: cells[0]?.evidence ?? null,
    };
  });
}

/** What was measured with a setting on a kernel. */
function armOf(cells: readonly Comparison[], kernel: Arm, setting: string): ArmSummary | null {
  for (const of of cells) {
    if (of.question === "kernel") {
      if (of.setting === setting && of[kernel]) return of[kernel];
    } else if ((of.kernel ?? "baseline") === kernel) {
      const arm = of.setting === setting ? of.candidate : of.reference === setting ? of.baseline : null;
      if (arm) return arm;
    }
  }
  return null;
}

// --- environment --------------------------------------------------------------------------------------------------

const OF_THE_LAB = "wqlab.";

export interface CommandLine {
  of: string;
  text: string;
  /** The lab's own arguments are left out. */
  shortened: boolean;
}

/** Kernel command lines; arms that have the same share one. */
export function commandLines(cmdline: Partial<Record<Arm, string>>): CommandLine[] {
  const arms = Object.entries(cmdline).map(([arm, line]) => {
    const words = line.split(/\s+/).filter(Boolean);
    const kept = words.filter(word => !word.startsWith(OF_THE_LAB));
    return { arm, text: kept.join(" "), shortened: kept.length < words.length };
  });
  return [...Map.groupBy(arms, ({ text }) => text)].map(([text, of]) => ({
    of: of.length > 1 ? "both kernels" : (of[0]?.arm ?? ""),
    text,
    shortened: of.some(each => each.shortened),
  }));
}

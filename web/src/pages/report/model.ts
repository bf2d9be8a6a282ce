/**
 * View model of a report: looks up, groups and sorts data from the server. It computes no figures or verdicts.
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
import { decides, VERDICT_ORDER } from "@/lib/words";
import type { NewBisection } from "../bisections/search";
import { shownComparisons } from "./failures";

/** One comparison and the target it belongs to. */
export interface Cell {
  key: string;
  target: TargetReport;
  of: Comparison;
  /** Arms shown in the same table column; they use the same number of decimal places, as in the plain-text report. */
  column: readonly (ArmSummary | null)[];
}

/**
 * Key of a comparison in the URL: `2/HIGH/local_l3_share/scope=cache,strict=1@baseline`. `@KERNEL` marks a settings
 * study.
 */
export function cellKey(run: number, of: Comparison): string {
  const kernel = of.question === "setting" ? `@${of.kernel ?? ""}` : "";
  return `${run}/${of.scenario}/${of.metric}${of.setting || kernel ? `/${of.setting}${kernel}` : ""}`;
}

/** Return all comparisons of a report in order. */
export function cellsOf(report: Report): Cell[] {
  const columns = new Map<string, (ArmSummary | null)[]>();
  return report.targets.flatMap(target =>
    shownComparisons(report, target).map(of => {
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

/** Return the default comparison: the one that decides the verdict of the worst target. */
export function firstCell(cells: readonly Cell[]): Cell | undefined {
  const candidates = cells
    .filter(({ of }) => decides(of))
    .toSorted((a, b) => weight(a.of.verdict) - weight(b.of.verdict));
  const deciding = candidates
    .filter(({ of, target }) => of.verdict === target.verdict)
    .toSorted((a, b) => weight(a.target.verdict) - weight(b.target.verdict));
  return deciding[0] ?? candidates[0] ?? cells[0];
}

function weight(verdict: Verdict | null): number {
  return verdict ? VERDICT_ORDER.indexOf(verdict) : VERDICT_ORDER.length;
}

/** What a bisection of a comparison begins with: two commits of a tree that differ. Null if there is nothing to search. */
export function bisectionOf({ submission }: Report, { of, target }: Cell): Partial<NewBisection> | null {
  const commits = submission.request.series?.commits;
  if (!commits || of.question !== "kernel" || submission.state !== "finished") return null;
  if (of.verdict !== "regression" && of.verdict !== "improvement") return null;
  return {
    tree: submission.tree,
    good: commits.baseline,
    bad: commits.candidate,
    ref: commits.ref ?? "",
    plan: target.plan.name,
    type: target.device_type,
    scenario: of.scenario,
    setting: of.setting,
    metric: of.metric,
    submission: submission.id,
  };
}

// --- the matrix ---------------------------------------------------------------------------------------------------

export interface MatrixRow {
  target: TargetReport;
  /** Null if there are no comparisons. */
  metric: string | null;
  evidence: Evidence | null;
  /** One per column; undefined if this device has no such comparison. */
  cells: (Cell | undefined)[];
}

/** Matrix of one plan and one question: devices by scenarios and settings. */
export interface Matrix {
  id: string;
  plan: string;
  question: Question;
  /** The kernel on which settings were compared. */
  kernel: Arm | null;
  /** Reference setting; empty for kernel comparisons. */
  reference: string;
  scenarios: { name: string; summary: string; settings: string[] }[];
  rows: MatrixRow[];
}

/** Return the matrices of a metric; "" selects the primary metric of each device, and each one that regressed. */
export function matricesOf(report: Report, cells: readonly Cell[], metric: string): Matrix[] {
  const chosen = cells.filter(({ of }) => (metric ? of.metric === metric : decides(of)));
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
  const at = new Map(group.map(cell => [place(cell), cell]));
  const rows = targets.flatMap(target => {
    const own = group.filter(cell => cell.target === target);
    const metrics = own.length > 0 ? [...new Set(own.map(({ of }) => of.metric))] : [null];
    return metrics.map(metric => ({
      target,
      metric,
      evidence: own.find(({ of }) => of.metric === metric)?.of.evidence ?? null,
      cells: scenarios.flatMap(({ name, settings }) =>
        settings.map(setting => at.get(`${target.run_id}\n${metric}\n${name}\n${setting}`)),
      ),
    }));
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

function place({ target, of }: Cell): string {
  return `${target.run_id}\n${of.metric}\n${of.scenario}\n${of.setting}`;
}

/** Return the metrics with a verdict on any device, in the plans' order. */
export function judgedMetrics(cells: readonly Cell[]): string[] {
  return [...new Set(cells.filter(({ of }) => of.role !== "explanatory").map(({ of }) => of.metric))];
}

// --- one cell -----------------------------------------------------------------------------------------------------

/** Value of one boot. */
export interface BootDot {
  block: number;
  value: number;
}

/** Names and boot values of the two compared arms. */
export interface Sides {
  baseline: { name: string; dots: BootDot[] };
  candidate: { name: string; dots: BootDot[] };
}

/** Return both arms of a comparison with the values of their boots. */
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

/** Settings study of one kernel on one device: one row per scenario and setting, reference first. */
export interface Study {
  kernel: Arm | null;
  reference: string;
  /** Primary metric. */
  primary: string;
  /** Metrics in column order, primary first. */
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
  /** Mean and standard deviation of this setting by metric. */
  figures: Map<string, ArmSummary | null>;
  /** Comparison of the primary metric; null for the reference. */
  primary: Cell | null;
}

/** Return the settings studies of a target, one per kernel. */
export function studiesOf(target: TargetReport, cells: readonly Cell[]): Study[] {
  const settingCells = cells.filter(({ of, target: its }) => its === target && of.question === "setting");
  return [...Map.groupBy(settingCells, ({ of }) => of.kernel ?? null)].flatMap(([kernel, group]) => {
    const first = group.find(({ of }) => of.role === "primary");
    return first ? [study(target, kernel, first.of, group)] : [];
  });
}

function study(target: TargetReport, kernel: Arm | null, first: Comparison, group: readonly Cell[]): Study {
  const { tradeoff, metrics } = target.plan;
  // Columns: the primary metric, metrics with published figures, and both sides of the tradeoff.
  const names = new Set([
    first.metric,
    ...target.references.map(each => each.metric),
    ...(tradeoff ? [tradeoff.work_conservation, tradeoff.locality] : []),
  ]);
  const shown = [...names].flatMap(name => {
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

/**
 * One boot of one setting in the tradeoff figure. `conservation` is null if it is not evidence or was not measured.
 */
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

/** Return the data of the tradeoff figure; null if the plan defines none or locality is not evidence. */
export function tradeoffOf(target: TargetReport, of: Study): Trade | null {
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
  /**
   * This lab's measurement of the same scenario, setting and metric, or of the same change; null if there is none.
   */
  measured: { mean: number; stddev?: number | null } | null;
  unit: string;
  evidence: Evidence | null;
}

/** Match published figures with this lab's measurements, preferably on the baseline. For display only. */
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

/** Return the measured values of a setting on a kernel. */
function armOf(
  cells: readonly Comparison[],
  kernel: "baseline" | "candidate",
  setting: string,
): ArmSummary | null {
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

const LAB_PARAMETER_PREFIX = "wqlab.";

export interface CommandLine {
  of: string;
  text: string;
  /** True if the lab's parameters were removed. */
  shortened: boolean;
}

/** Return the kernel command lines; equal ones are merged. */
export function commandLines(cmdline: Partial<Record<Arm, string>>): CommandLine[] {
  const arms = Object.entries(cmdline).map(([arm, line]) => {
    const words = line.split(/\s+/).filter(Boolean);
    const kept = words.filter(word => !word.startsWith(LAB_PARAMETER_PREFIX));
    return { arm, text: kept.join(" "), shortened: kept.length < words.length };
  });
  return [...Map.groupBy(arms, ({ text }) => text)].map(([text, of]) => ({
    of: of.length > 1 ? "both kernels" : (of[0]?.arm ?? ""),
    text,
    shortened: of.some(each => each.shortened),
  }));
}

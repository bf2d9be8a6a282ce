/** Lines, points and shifts for tests. The figures are made up; nothing is computed. */
import type { HistoryLine, HistoryLineData, HistoryPoint, HistoryShift } from "@/api/types";

const DAY_MS = 86_400_000;

export function makePoint(index: number, of: Partial<HistoryPoint> = {}): HistoryPoint {
  return {
    head: { id: index + 1, name: "for-next", commit: (index + 1).toString(16).padStart(40, "0") },
    at: new Date(Date.UTC(2026, 9, 1) + index * DAY_MS).toISOString(),
    value: 34,
    stddev: 0.5,
    n: 4,
    effect: index === 0 ? null : 0,
    ci95: index === 0 ? null : [-0.5, 0.5],
    verdict: index === 0 ? null : "equivalent",
    run_id: 7,
    submission_id: 5,
    cut: "",
    ...of,
  };
}

export function makeLine(of: Partial<HistoryLine> = {}): HistoryLine {
  return {
    id: 1,
    tree: "next",
    ref: "for-next",
    plan: "flush",
    device_type: "xeon-2s",
    scenario: "fsync",
    setting: "scope=cache",
    metric: "locks",
    unit: "locks",
    scale: "ratio",
    effect_unit: "%",
    direction: "lower_is_better",
    role: "primary",
    evidence: "mechanism",
    points: 2,
    last: null,
    level: null,
    recent: [],
    delta: 1,
    open_shifts: 0,
    ...of,
  };
}

/** A line with a step of its level at the middle. */
export function makeLineData(size: number, of: Partial<HistoryLineData> = {}): HistoryLineData {
  const step = Math.floor(size / 2);
  const series = Array.from({ length: size }, (_, index) =>
    makePoint(index, {
      value: index < step ? 34 : 40,
      ...(index === step && { effect: 17.6, ci95: [16.1, 19], verdict: "regression" as const }),
    }),
  );
  return {
    ...makeLine({ points: size }),
    series,
    levels: [
      { start: 0, end: step, middle: 34, spread: 0.5 },
      { start: step, end: size, middle: 40, spread: 0.5 },
    ],
    shifts: [],
    ...of,
  };
}

export function makeShift(of: Partial<HistoryShift> = {}): HistoryShift {
  return {
    id: 1,
    line: makeLine(),
    state: "new",
    source: "verdict",
    before: makePoint(4).head,
    after: makePoint(5).head,
    suspected_effect: 17.6,
    worse: true,
    submission_id: null,
    bisection: null,
    effect: null,
    ci95: null,
    verdict: null,
    reason: "",
    owner: "",
    notes: "",
    created_at: "2026-11-01T00:00:00Z",
    decided_at: null,
    changed_at: "2026-11-01T00:00:00Z",
    changed_by: "",
    ...of,
  };
}

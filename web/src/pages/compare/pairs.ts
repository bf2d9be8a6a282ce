/** Which pairs of figures a reader asked for, and what a pair is called. */
import type { Comparison, FigureChange, FigurePair } from "@/api/types";
import { effect, interval } from "@/lib/numbers";
import type { CompareSearch } from "./route";

/** In words and with a sign; no colour: two submissions are not paired, so a difference is no verdict. */
export const CHANGE_WORDS: Record<FigureChange, { sign: string; word: string; meaning: string }> = {
  better: {
    sign: "↑",
    word: "better verdict",
    meaning: "The second's own verdict is better than the first's.",
  },
  worse: { sign: "↓", word: "worse verdict", meaning: "The second's own verdict is worse than the first's." },
  same: { sign: "=", word: "same verdict", meaning: "Each has the same verdict against its own baseline." },
  other: {
    sign: "≠",
    word: "another verdict",
    meaning: "The verdicts differ, but one of them says that nothing is known.",
  },
  only_first: { sign: "", word: "first only", meaning: "The second has no such figure." },
  only_second: { sign: "", word: "second only", meaning: "The first has no such figure." },
  none: { sign: "", word: "no verdicts", meaning: "Neither has a verdict, or the figure is no evidence." },
};

export function pairKey(of: FigurePair): string {
  return [of.plan, of.device_type, of.scenario, of.setting, of.question, of.kernel, of.metric].join(" ");
}

/** What both sides share; one of them is there. */
export function either(of: FigurePair): Comparison {
  return (of.second ?? of.first) as Comparison;
}

export type PairFilter = Pick<CompareSearch, "topology" | "scenario" | "metric" | "role" | "change">;

export function wanted(pairs: readonly FigurePair[], filter: PairFilter): FigurePair[] {
  return pairs.filter(
    of =>
      (!filter.topology || of.device_type === filter.topology) &&
      (!filter.scenario || of.scenario === filter.scenario) &&
      (!filter.metric || of.metric === filter.metric) &&
      (!filter.role || either(of).role === filter.role) &&
      (filter.change.length === 0 || filter.change.includes(of.change)),
  );
}

/** `+1.24 % [+0.81, +1.52]`; empty where the server computed none. */
export function effectWords(of: Comparison | null): string {
  if (of?.effect == null) return "";
  return `${effect(of)} ${of.exact ? "exact" : interval(of.ci95)}`.trimEnd();
}

/** Filtering and labels for pairs of figures. */
import type { Comparison, FigureChange, FigurePair } from "@/api/types";
import { effect, intervalOf } from "@/lib/numbers";
import type { CompareSearch } from "./search";

/** Labels without colors: the submissions are not paired, so a difference is not a verdict. */
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
    word: "different verdict",
    meaning: "The verdicts differ, but one of them is not conclusive.",
  },
  only_first: { sign: "", word: "first only", meaning: "Only the first submission has this figure." },
  only_second: { sign: "", word: "second only", meaning: "Only the second submission has this figure." },
  none: { sign: "", word: "no verdicts", meaning: "Neither has a verdict, or the figure is not evidence." },
};

/** Return a unique key for a pair. */
export function pairKey(of: FigurePair): string {
  return [of.plan, of.device_type, of.scenario, of.setting, of.question, of.kernel, of.metric].join(" ");
}

/** Return the comparison of one side, for properties that both sides share. */
export function either(of: FigurePair): Comparison {
  return (of.second ?? of.first) as Comparison;
}

export type PairFilter = Pick<CompareSearch, "topology" | "scenario" | "metric" | "role" | "change">;

/** Return the pairs that match the filter. */
export function filterPairs(pairs: readonly FigurePair[], filter: PairFilter): FigurePair[] {
  return pairs.filter(
    of =>
      (!filter.topology || of.device_type === filter.topology) &&
      (!filter.scenario || of.scenario === filter.scenario) &&
      (!filter.metric || of.metric === filter.metric) &&
      (!filter.role || either(of).role === filter.role) &&
      (filter.change.length === 0 || filter.change.includes(of.change)),
  );
}

/** Format an effect: `+1.24 % [+0.81, +1.52]`; empty if the server computed none. */
export function effectText(of: Comparison | null): string {
  if (of?.effect == null) return "";
  return `${effect(of)} ${intervalOf(of)}`.trimEnd();
}

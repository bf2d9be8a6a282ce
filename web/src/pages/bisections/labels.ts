/** Texts of bisections. */
import type { Bisection, BisectionCommit, BisectionData, BisectionState, BisectionStep } from "@/api/types";
import { effect, fixed, interval } from "@/lib/numbers";
import { oneLine } from "@/lib/words";

/** What each state means, as docs/bisect.md has it. */
export const STATE_MEANING: Record<BisectionState, string> = {
  listing: "A worker lists the commits.",
  ends: "Good and bad are measured side by side.",
  searching: "Commits between good and bad are measured.",
  confirming: "The suspect is measured against its parent.",
  found: "The commit differs from its parent in a run with all blocks.",
  range: "One of neighbouring commits is the culprit; those before the last cannot be measured.",
  no_difference: "There is nothing to search.",
  not_confirmed: "No suspect differs from its parent.",
  failed: "It could not go on.",
  canceled: "It was canceled.",
};

const OPEN: ReadonlySet<BisectionState> = new Set(["listing", "ends", "searching", "confirming"]);
export const goesOn = ({ state }: Pick<Bisection, "state">) => OPEN.has(state);

export const isFound = ({ state }: Pick<Bisection, "state">) => state === "found" || state === "range";

export const shortCommit = (commit: string) => commit.slice(0, 12);

/** What is searched for: the metric, or a failure of the kernel. */
export const subjectOf = ({ request }: Pick<Bisection, "request">) => request.metric ?? "kernel failure";

/** Plan, scenario and setting. */
export function cellText({ request }: Pick<Bisection, "request">): string {
  return oneLine([request.plan, request.scenario, request.setting].filter(Boolean).join(" "));
}

/** A branch or tag as it is, a commit abbreviated. */
export const revisionText = (revision: string) =>
  /^[0-9a-f]{13,40}$/.test(revision) ? shortCommit(revision) : oneLine(revision);

/** An effect with its interval: `+2.31 % [+1.90, +2.75]`; empty if there is none. */
export function effectText(
  of: Pick<Bisection, "scale" | "effect_unit">,
  value: number | null,
  ci95: readonly number[] | null,
): string {
  if (value === null) return "";
  const text = effect({ effect: value, scale: of.scale ?? "difference", effect_unit: of.effect_unit });
  return `${text} ${interval(ci95)}`.trim();
}

/** A probability in percent: `<0.1 %`, `4.2 %`, `>99.9 %`. */
export function chanceText(probability: number): string {
  if (probability < 0.001) return "<0.1 %";
  return probability > 0.999 ? ">99.9 %" : `${fixed(100 * probability, 1)} %`;
}

/** What was measured of a commit; empty if nothing was. */
export function measuredText(of: BisectionData, commit: BisectionCommit): string {
  if (commit.unusable) return oneLine(commit.unusable);
  if (commit.effect !== null) return effectText(of, commit.effect, commit.ci95);
  const boots = commit.passed + commit.failed;
  return boots > 0 ? `${commit.failed} of ${boots} boots fail` : "";
}

export const KIND_WORDS: Record<BisectionStep["kind"], string> = {
  ends: "good against bad",
  probe: "good against a commit",
  confirm: "parent against suspect",
  revert: "bad against bad with the commit reverted",
};

/** What a step has said. */
export function stepText(of: BisectionData, step: BisectionStep): string {
  if (step.state === "running") return "is measured";
  if (step.state !== "measured") return oneLine(step.reason);
  const text = effectText(of, step.effect, step.ci95);
  if (text) return text;
  return `${step.failed} of ${step.failed + step.passed} boots fail`;
}

/** The range of commits that is found, or the one commit; empty if there is none. */
export function culpritText({ culprit, first }: Pick<Bisection, "culprit" | "first">): string {
  if (!culprit) return "";
  const from = first && first !== culprit.commit ? `${shortCommit(first)}..` : "";
  return from + shortCommit(culprit.commit);
}

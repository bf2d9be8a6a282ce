/** Texts of lines, points and shifts. */
import type { Direction, HeadRef, HistoryLine, HistoryShift, ShiftSource, ShiftState } from "@/api/types";
import { effect, interval, MINUS } from "@/lib/numbers";
import type { Tone } from "@/lib/words";

/** What each state means, as docs/history.md has it. */
export const STATE_MEANING: Record<ShiftState, string> = {
  new: "Suspected. A paired run of both sides is to confirm it.",
  confirmed: "A paired run has measured the change again.",
  not_reproduced: "Could not reproduce: the paired run has not measured the change again.",
  explained: "A maintainer has said why it is no defect.",
  fixed: "A maintainer has named what fixes it.",
};
export const STATES = Object.keys(STATE_MEANING) as ShiftState[];

export const SOURCE_MEANING: Record<ShiftSource, string> = {
  verdict: "the verdict of the head after, measured side by side with the head before",
  level: "another level over several heads",
};

export const DIRECTION_WORDS: Record<Direction, string> = {
  higher_is_better: "Higher is better.",
  lower_is_better: "Lower is better.",
  none: "Neither direction is better.",
};

/** States in which somebody has to look at a shift. */
export const isOpen = ({ state }: Pick<HistoryShift, "state">) => state === "new" || state === "confirmed";

/** Plan, scenario and setting of a line. */
export function cellText({
  plan,
  scenario,
  setting,
}: Pick<HistoryLine, "plan" | "scenario" | "setting">): string {
  return [plan, scenario, setting].filter(Boolean).join(" ");
}

export const shortCommit = (commit: string) => commit.slice(0, 12);

/** Name of a head: a tag, else the abbreviated commit. */
export function headText(head: HeadRef, { ref }: Pick<HistoryLine, "ref">): string {
  return head.name === ref ? shortCommit(head.commit) : head.name;
}

export interface Change {
  sign: string;
  word: string;
  tone: Tone;
}

/** Whether a shift is to the worse: sign, word and tone. One that nobody has to look at has no tone. */
export function changeOf({ worse, state }: Pick<HistoryShift, "worse" | "state">): Change {
  const settled = !isOpen({ state });
  if (worse === null) return { sign: "±", word: "changed", tone: settled ? "none" : "unsure" };
  const look = worse ? { sign: MINUS, word: "worse" } : { sign: "+", word: "better" };
  return { ...look, tone: settled ? "none" : worse ? "bad" : "good" };
}

/** Effect that was suspected: `+17.6 %`. */
export function suspectedText({ suspected_effect, line }: HistoryShift): string {
  return effect({ effect: suspected_effect, scale: line.scale, effect_unit: line.effect_unit });
}

/** Effect of the paired run with its interval: `+17.6 % [+16.1, +19.0]`; empty if it was not measured. */
export function measuredText({ effect: measured, ci95, line }: HistoryShift): string {
  if (measured === null) return "";
  const text = effect({ effect: measured, scale: line.scale, effect_unit: line.effect_unit });
  return `${text} ${interval(ci95)}`.trim();
}

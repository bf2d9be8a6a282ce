/** Labels of watches: states, reasons and batches. */
import type { Batch, DecisionReason, DecisionState, WatchedHeadState } from "@/api/types";

/** Every state; the type makes a missing one an error. */
export const DECISION_MEANING: Record<DecisionState, string> = {
  waiting: "The watch will take the series later.",
  taken: "The series has become a submission.",
  not_taken: "The watch does not want the series, or cannot take it.",
};
export const DECISION_STATES = Object.keys(DECISION_MEANING) as DecisionState[];

const REASON_WORDS: Record<DecisionReason, string> = {
  paths: "other files",
  subjects: "other subject",
  authors: "other author",
  not_asked: "did not ask",
  incomplete: "incomplete",
  removed: "removed from the archive",
  other_watch: "another watch took it",
  superseded: "a later revision came",
  disabled: "the watch was disabled",
  quiet_hours: "quiet hours",
  over_budget: "over budget",
  quota: "over the owner's quota",
  invalid: "refused by the lab",
};
export const REASONS = Object.keys(REASON_WORDS) as DecisionReason[];

export function reasonText(reason: DecisionReason): string {
  return REASON_WORDS[reason];
}

/** Counts of series by reason, the most frequent first: `12 other files, 1 incomplete`. */
export function reasonCounts(counts: Partial<Record<DecisionReason, number>>): string {
  return REASONS.filter(reason => counts[reason])
    .toSorted((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0))
    .map(reason => `${counts[reason]} ${REASON_WORDS[reason]}`)
    .join(", ");
}

/** What each state of a head means, as docs/intake.md has it. */
export const HEAD_MEANING: Record<WatchedHeadState, string> = {
  start: "The first head of its line: there is nothing to compare it with.",
  waiting: "Seen, not submitted yet.",
  running: "Its submission is not finished.",
  measured: "Compared with the last head that was measured.",
  skipped: "Not measured: another head is, or was.",
  failed: "It did not build or boot, or the lab failed three times.",
};
export const HEAD_STATES = Object.keys(HEAD_MEANING) as WatchedHeadState[];

export const BATCH_MEANING: Record<Batch, string> = {
  newest: "The newest is measured, the others are skipped.",
  all: "Each is measured against the one before.",
  range: "As newest. If it differs or fails, the range of commits to bisect is kept.",
};
export const BATCHES = Object.keys(BATCH_MEANING) as Batch[];

/** `3 measured, 1 waiting`, in the order of the states; `no heads` without any. */
export function headCounts(heads: Readonly<Record<string, number>>): string {
  return (
    HEAD_STATES.filter(state => heads[state])
      .map(state => `${heads[state]} ${state}`)
      .join(", ") || "no heads"
  );
}

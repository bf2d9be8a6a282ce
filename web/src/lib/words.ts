/** Labels, signs and tones for the API's enums. Each verdict has a sign and a word, never only a colour. */
import type {
  Comparison,
  ErrorKind,
  Evidence,
  Failure,
  NotMeasuredCause,
  Outcome,
  Verdict,
} from "@/api/types";

export type Tone = "good" | "bad" | "same" | "unsure" | "none";

export interface VerdictLook {
  /** One character; empty for `no evidence`, which has neither sign nor colour. */
  sign: string;
  word: string;
  tone: Tone;
  /** Explanation, for the tooltip. */
  meaning: string;
}

export const VERDICTS: Record<Verdict, VerdictLook> = {
  improvement: {
    sign: "+",
    word: "improvement",
    tone: "good",
    meaning: "Better: significant, and at least the smallest relevant effect.",
  },
  regression: {
    sign: "\u2212",
    word: "regression",
    tone: "bad",
    meaning: "Worse: significant, and at least the smallest relevant effect.",
  },
  equivalent: {
    sign: "=",
    word: "equivalent",
    tone: "same",
    meaning: "No difference as large as the smallest relevant effect.",
  },
  below_threshold: {
    sign: "\u2248",
    word: "below threshold",
    tone: "same",
    meaning: "Significant, but smaller than the smallest relevant effect.",
  },
  inconclusive: {
    sign: "?",
    word: "inconclusive",
    tone: "unsure",
    meaning: "Can't tell yet: the data neither show a relevant change nor rule it out.",
  },
  withheld: {
    sign: "~",
    word: "withheld",
    tone: "unsure",
    meaning:
      "A model's figure without a verdict: it is not validated, or the change is within the noise floor.",
  },
  not_exercised: {
    sign: "\u2298",
    word: "not exercised",
    tone: "unsure",
    meaning: "No changed line ran, so that no figure says anything about the series.",
  },
  failed: { sign: "!", word: "failed", tone: "bad", meaning: "Not measured because the run failed." },
  unsupported: {
    sign: "/",
    word: "unsupported",
    tone: "none",
    meaning: "The kernel or the device does not support this setting or metric.",
  },
  no_evidence: {
    sign: "",
    word: "no evidence",
    tone: "none",
    meaning: "Value only: timing on an emulated device is not evidence of performance.",
  },
};

/** Return true if a comparison decides its target's verdict: one of the primary metric, or a judged regression. */
export function decides(of: Comparison): boolean {
  return of.role === "primary" || (of.verdict === "regression" && of.question === "kernel");
}

/** Label of each cause of a missing figure. */
export const NOT_MEASURED: Record<NotMeasuredCause, string> = {
  lacking: "not supported",
  setting_not_used: "setting not used",
  no_samples: "no samples",
  events_lost: "events lost",
  unreliable: "unreliable data",
  run_failed: "run failed",
  unpaired: "not paired",
  not_run: "not run",
};

/** Verdicts from the most to the least severe: the order in which counts of verdicts are listed. */
export const VERDICT_ORDER = Object.keys(VERDICTS).toSorted((a, b) => weight(a) - weight(b)) as Verdict[];

function weight(verdict: string): number {
  return [
    "failed",
    "regression",
    "improvement",
    "below_threshold",
    "equivalent",
    "inconclusive",
    "withheld",
    "not_exercised",
    "unsupported",
    "no_evidence",
  ].indexOf(verdict);
}

export const EVIDENCE: Record<Evidence, { word: string; meaning: string }> = {
  mechanism: {
    word: "mechanism",
    meaning: "What the kernel did: counts and shares. Valid evidence on emulated devices too.",
  },
  performance: {
    word: "performance",
    meaning: "Measured speed on real hardware.",
  },
  instrumented: {
    word: "counts",
    meaning: "Instructions and cache lines, counted exactly by the emulator: counts, not times.",
  },
  modelled: {
    word: "modelled",
    meaning: "A figure in virtual time, from stated costs of a machine: a model's, never measured.",
  },
  none: {
    word: "no evidence",
    meaning: "Speed measured on an emulated device: timing there is not evidence of performance.",
  },
};

/** Cause, tone and default advice for each kind of failure, which is its label too. */
export const FAILURE_KINDS: Record<ErrorKind, { cause: string; tone: Tone; advice: string }> = {
  user: {
    cause: "the series or the request",
    tone: "bad",
    advice: "Fix the errors below and submit again.",
  },
  kernel: {
    cause: "the kernel under test",
    tone: "bad",
    advice: "Read the console of this boot around the lines quoted here.",
  },
  infrastructure: {
    cause: "the lab, not the kernel",
    tone: "unsure",
    advice: "None while the lab retries automatically. If all attempts fail, retry and tell a maintainer.",
  },
  canceled: {
    cause: "canceled by a user",
    tone: "none",
    advice: "Retry if the result is still needed.",
  },
};

/** Number of characters at the beginning of an excerpt that no list leaves out. */
const COMPARED_CHARACTERS = 500;

/**
 * Return true if `failure` is the same as `main`. Kernel reports are the same defect if their call traces are, which
 * `defect` describes. A submission's failure is that of one of its parts, prefixed with the name of the part, and lists
 * leave out the middle of excerpts.
 */
export function isSameFailure(failure: FailureLike, main: Failure | null | undefined): boolean {
  if (main == null || failure.kind !== main.kind) return false;
  if (failure.defect && main.defect) return failure.defect === main.defect;
  return (
    main.summary.endsWith(failure.summary) &&
    (main.excerpt ?? "").startsWith((failure.excerpt ?? "").slice(0, COMPARED_CHARACTERS))
  );
}

type FailureLike = Pick<Failure, "kind" | "summary"> & Partial<Failure>;

const STATE_TONES: Record<string, Tone> = {
  passed: "good",
  failed: "bad",
  canceled: "none",
  good: "good",
  free: "good",
  suspect: "unsure",
  quarantined: "bad",
  waiting_for_review: "unsure",
  delivered: "good",
  given_up: "bad",
  on: "good",
  taken: "good",
  measured: "good",
  new: "unsure",
  confirmed: "unsure",
  fixed: "good",
  found: "good",
  range: "unsure",
  not_confirmed: "unsure",
  unusable: "unsure",
};

/** Return the tone of a state or an outcome; `none` for states in progress. */
export function toneOf(word: string): Tone {
  return STATE_TONES[word] ?? "none";
}

/** Return the outcome, or the state while there is none, as text. */
export function stateOrOutcome(of: { state: string; outcome?: Outcome | null }): string {
  return humanize(of.outcome ?? of.state);
}

/** Format an enum value as text: `below_threshold` as "below threshold". */
export function humanize(word: string): string {
  return word.replaceAll("_", " ");
}

// C0 and C1 controls except tab and newline, and the characters that reorder text on a screen.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Make control characters in submitted text visible, so that a title or a log cannot manipulate the page. */
export function clean(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(CONTROL, char => {
    const code = char.charCodeAt(0);
    if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`;
    return code === 0x7f ? "^?" : `<${code.toString(16).padStart(4, "0")}>`;
  });
}

/** Clean a text and collapse its white space. */
export function oneLine(text: string): string {
  return clean(text).split(/\s+/).filter(Boolean).join(" ");
}

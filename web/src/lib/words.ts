/** What the closed vocabularies of the API are called on a page. Each verdict has a sign and a word, never colour only. */
import type { ErrorKind, Evidence, Failure, Outcome, Verdict } from "@/api/types";

export type Tone = "good" | "bad" | "same" | "unsure" | "none";

export interface VerdictLook {
  /** One character; empty for `no evidence`, which has neither sign nor colour anywhere. */
  sign: string;
  word: string;
  tone: Tone;
  /** What it means, in a sentence. */
  meaning: string;
}

export const VERDICTS: Record<Verdict, VerdictLook> = {
  improvement: {
    sign: "+",
    word: "improvement",
    tone: "good",
    meaning: "Better: beyond noise, and at least the smallest effect worth a person's attention.",
  },
  regression: {
    sign: "\u2212",
    word: "regression",
    tone: "bad",
    meaning: "Worse: beyond noise, and at least the smallest effect worth a person's attention.",
  },
  equivalent: {
    sign: "=",
    word: "equivalent",
    tone: "same",
    meaning: "Shown to be the same, within the smallest effect worth a person's attention.",
  },
  below_threshold: {
    sign: "\u2248",
    word: "below threshold",
    tone: "same",
    meaning: "A real change, smaller than what is worth a person's attention.",
  },
  inconclusive: {
    sign: "?",
    word: "inconclusive",
    tone: "unsure",
    meaning: "Can't tell yet: the data neither show a change nor rule one out.",
  },
  failed: { sign: "!", word: "failed", tone: "bad", meaning: "Not measured, because the run failed." },
  unsupported: {
    sign: "/",
    word: "unsupported",
    tone: "none",
    meaning: "The kernel or the device lacks this setting or metric.",
  },
  no_evidence: {
    sign: "",
    word: "no evidence",
    tone: "none",
    meaning:
      "A value only: an emulated device's clock is not hardware, so speed measured there proves nothing.",
  },
};

/** The worst first: the order in which counts of verdicts are listed. */
export const BY_WEIGHT = Object.keys(VERDICTS).toSorted((a, b) => weight(a) - weight(b)) as Verdict[];

function weight(verdict: string): number {
  return [
    "failed",
    "regression",
    "improvement",
    "below_threshold",
    "equivalent",
    "inconclusive",
    "unsupported",
    "no_evidence",
  ].indexOf(verdict);
}

export const EVIDENCE: Record<Evidence, { word: string; meaning: string }> = {
  mechanism: {
    word: "mechanism",
    meaning:
      "What the kernel did, counted: locks, migrations, shares. Proves something on emulated devices too.",
  },
  performance: {
    word: "performance",
    meaning: "How fast it was, on real hardware.",
  },
  none: {
    word: "no evidence",
    meaning: "Speed on an emulated device. Its clock is not hardware: a value only, which proves nothing.",
  },
};

/** Whose a failure is: who has to act on it, and how where the failure itself says nothing better. */
export const WHOSE: Record<ErrorKind, { word: string; whose: string; tone: Tone; advice: string }> = {
  user: {
    word: "series",
    whose: "the series or the request",
    tone: "bad",
    advice: "Mend what is said here, and submit again.",
  },
  kernel: {
    word: "kernel",
    whose: "the kernel under test",
    tone: "bad",
    advice: "Read the console of this boot: the kernel said it there, before and after what is quoted.",
  },
  infrastructure: {
    word: "lab",
    whose: "the lab; never held against a kernel",
    tone: "unsure",
    advice:
      "Nothing, as long as the lab tries again by itself. Once it has given up: retry, and tell a maintainer.",
  },
  canceled: {
    word: "canceled",
    whose: "somebody stopped it",
    tone: "none",
    advice: "Retry, if it is still wanted.",
  },
};

/**
 * Whether a failure says nothing that `told` does not. A submission's failure is a part's with a word in front of which
 * part that was, and lists have excerpts without their beginning.
 */
export function isTold(failure: Told, told: Failure | null | undefined): boolean {
  return (
    told != null &&
    failure.kind === told.kind &&
    told.summary.endsWith(failure.summary) &&
    (told.excerpt ?? "").endsWith(failure.excerpt ?? "")
  );
}

type Told = Pick<Failure, "kind" | "summary"> & Partial<Failure>;

const STATE_TONES: Record<string, Tone> = {
  passed: "good",
  failed: "bad",
  canceled: "none",
  good: "good",
  suspect: "unsure",
  quarantined: "bad",
};

/** The tone of a state or an outcome; what merely goes on has none. */
export function toneOf(word: string): Tone {
  return STATE_TONES[word] ?? "none";
}

/** How it ended, or where it is. */
export function howItStands(of: { state: string; outcome?: Outcome | null }): string {
  return spoken(of.outcome ?? of.state);
}

/** `below_threshold` as people say it. */
export function spoken(word: string): string {
  return word.replaceAll("_", " ");
}

// C0 and C1 controls except tab and newline, and the characters that reorder text on a screen.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Submitted text with its control characters made visible: a title or a log must not steer what the reader sees. */
export function clean(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(CONTROL, char => {
    const code = char.charCodeAt(0);
    if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`;
    return code === 0x7f ? "^?" : `<${code.toString(16).padStart(4, "0")}>`;
  });
}

export function oneLine(text: string): string {
  return clean(text).split(/\s+/).filter(Boolean).join(" ");
}

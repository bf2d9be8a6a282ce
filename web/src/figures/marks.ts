/** How verdicts and arms look in figures: a form for each, so that the colour repeats what the form says. */
import type { Verdict } from "@/api/types";
import { type Tone, VERDICTS } from "@/lib/words";

/** Up for better, down for worse, a square for the same, a ring for what is not known. */
export interface Mark {
  symbol: "triangle" | "square" | "circle";
  /** Degrees. */
  rotate: number;
  filled: boolean;
  colour: string;
}

const COLOURS: Record<Tone, string> = {
  good: "var(--good)",
  bad: "var(--bad)",
  same: "var(--same)",
  unsure: "var(--unsure)",
  none: "var(--none)",
};

export function markOf(verdict: Verdict | null | undefined): Mark {
  const colour = COLOURS[verdict == null ? "none" : VERDICTS[verdict].tone];
  switch (verdict) {
    case "improvement":
      return { symbol: "triangle", rotate: 0, filled: true, colour };
    case "regression":
      return { symbol: "triangle", rotate: 180, filled: true, colour };
    case "equivalent":
      return { symbol: "square", rotate: 0, filled: true, colour };
    case "below_threshold":
      return { symbol: "square", rotate: 0, filled: false, colour };
    default:
      return { symbol: "circle", rotate: 0, filled: false, colour };
  }
}

/** A domain around `values` with room at both ends, also where they are all alike. */
export function domainOf(values: readonly number[]): [number, number] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  return [low - room, high + room];
}

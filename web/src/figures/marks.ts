/** Marks of verdicts in figures: each has its own shape, so that figures do not depend on colour. */
import type { Verdict } from "@/api/types";
import { type Tone, VERDICTS } from "@/lib/words";

/** Triangle up: improvement; down: regression; square: equivalent or below threshold; circle: other. */
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

/** Return the mark of a verdict. */
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

/** Return an axis domain around `values` with padding at both ends, also if all values are equal. */
export function domainOf(values: readonly number[]): [number, number] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const padding = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  return [low - padding, high + padding];
}

/** The part of the lab's past that the timeline shows, as the address says it. */
import type { Param } from "@/lib/search";

/** The server draws 31 days at most. */
export const SPANS = ["6h", "1d", "7d", "30d"] as const;
export type Span = (typeof SPANS)[number];

export const SPAN_LOOK: Record<Span, { hours: number; word: string }> = {
  "6h": { hours: 6, word: "6 hours" },
  "1d": { hours: 24, word: "a day" },
  "7d": { hours: 168, word: "a week" },
  "30d": { hours: 720, word: "30 days" },
};

const HOUR_MS = 3_600_000;

/** A moment to the minute in UTC, `2026-11-21T18:00Z`: the same for everybody who gets the link. Anything else is none. */
export function moment(): Param<string> {
  return {
    fallback: "",
    read: raw => {
      const given = String(Array.isArray(raw) ? raw[0] : (raw ?? ""));
      return /^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/.test(given) && !Number.isNaN(Date.parse(given)) ? given : "";
    },
  };
}

/** The end of the window before this one. */
export function earlier(until: Date, span: Span): string {
  return minute(new Date(until.getTime() - SPAN_LOOK[span].hours * HOUR_MS));
}

/** The end of the window after this one; "", which follows the clock, once that reaches the present. */
export function later(until: Date, span: Span, now: Date): string {
  const end = new Date(until.getTime() + SPAN_LOOK[span].hours * HOUR_MS);
  return end >= now ? "" : minute(end);
}

function minute(at: Date): string {
  return `${at.toISOString().slice(0, 16)}Z`;
}

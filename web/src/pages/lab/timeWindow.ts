/** Time window of the lab's timeline, as encoded in the URL. */
import type { Param } from "@/lib/search";

/** The server returns at most 31 days. */
export const SPANS = ["6h", "1d", "7d", "30d"] as const;
export type Span = (typeof SPANS)[number];

export const SPAN_INFO: Record<Span, { hours: number; word: string }> = {
  "6h": { hours: 6, word: "6 hours" },
  "1d": { hours: 24, word: "1 day" },
  "7d": { hours: 168, word: "1 week" },
  "30d": { hours: 720, word: "30 days" },
};

const HOUR_MS = 3_600_000;

/** Search parameter for a UTC timestamp with minute precision, `2026-11-21T18:00Z`. Other values read as "". */
export function timestampParam(): Param<string> {
  return {
    fallback: "",
    read: raw => {
      const text = String(Array.isArray(raw) ? raw[0] : (raw ?? ""));
      return /^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : "";
    },
  };
}

/** Return the end of the previous window. */
export function earlier(until: Date, span: Span): string {
  return minute(new Date(until.getTime() - SPAN_INFO[span].hours * HOUR_MS));
}

/** Return the end of the next window, or "" (follow the clock) if it reaches the present. */
export function later(until: Date, span: Span, now: Date): string {
  const end = new Date(until.getTime() + SPAN_INFO[span].hours * HOUR_MS);
  return end >= now ? "" : minute(end);
}

function minute(at: Date): string {
  return `${at.toISOString().slice(0, 16)}Z`;
}

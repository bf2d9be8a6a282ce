/** Search parameters of the report page. */
import { oneOf, searchParams, someOf, text } from "@/lib/search";

export const VERDICT_NAMES = [
  "improvement",
  "regression",
  "equivalent",
  "below_threshold",
  "inconclusive",
  "withheld",
  "not_exercised",
  "no_evidence",
  "unsupported",
  "failed",
] as const;

export const reportSearch = searchParams({
  /** Key of the selected comparison, see `cellKey`. */
  cell: text(400),
  /** Metric shown in the matrices; empty for each device's primary metric. */
  show: text(100),
  /** Filters and sort order of the table of all comparisons. */
  q: text(),
  topology: text(100),
  scenario: text(100),
  metric: text(100),
  question: oneOf(["kernel", "setting"]),
  role: oneOf(["primary", "secondary", "explanatory"]),
  evidence: oneOf(["mechanism", "performance", "instrumented", "modelled", "none"]),
  verdict: someOf(VERDICT_NAMES),
  /** Column ID; `-` in front sorts in descending order. */
  sort: text(40),
});

export type ReportSearch = typeof reportSearch.defaults;

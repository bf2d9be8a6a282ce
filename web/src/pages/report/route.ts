import { createRoute } from "@tanstack/react-router";
import { reportQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { oneOf, searchParams, someOf, text } from "@/lib/search";

export const VERDICT_NAMES = [
  "improvement",
  "regression",
  "equivalent",
  "below_threshold",
  "inconclusive",
  "no_evidence",
  "unsupported",
  "failed",
] as const;

export const reportSearch = searchParams({
  /** The comparison that is looked at: `cellKey`. */
  cell: text(400),
  /** What the matrices show; empty: of each device its primary metric. */
  show: text(100),
  /** Filters and order of the table of all comparisons. */
  q: text(),
  topology: text(100),
  scenario: text(100),
  metric: text(100),
  question: oneOf(["kernel", "setting"]),
  role: oneOf(["primary", "secondary", "explanatory"]),
  evidence: oneOf(["mechanism", "performance", "none"]),
  verdict: someOf(VERDICT_NAMES),
  /** A column's id; `-` before it for the largest first. */
  sort: text(40),
});

export type ReportSearch = typeof reportSearch.defaults;

export const reportRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions/$id/report",
  ...idParam,
  ...reportSearch,
  loader: ({ context, params }) => void context.client.prefetchQuery(reportQuery(params.id)),
  component: lazyPage(() => import("./ReportPage"), "ReportPage"),
});

import { createRoute } from "@tanstack/react-router";
import { comparisonQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { oneOf, searchParams, someOf, text, whole } from "@/lib/search";

export const CHANGES = ["worse", "better", "other", "same", "only_first", "only_second", "none"] as const;

export const compareSearch = searchParams({
  first: whole({ min: 1 }),
  second: whole({ min: 1 }),
  topology: text(100),
  scenario: text(100),
  metric: text(100),
  role: oneOf(["primary", "secondary", "explanatory"]),
  change: someOf(CHANGES),
  /** A column's id; `-` before it for the largest first. */
  sort: text(40),
});

export type CompareSearch = typeof compareSearch.defaults;

export const compareRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/compare",
  ...compareSearch,
  loaderDeps: ({ search: { first, second } }) => ({ first, second }),
  loader: ({ context, deps: { first, second } }) =>
    first && second && first !== second
      ? void context.client.prefetchQuery(comparisonQuery(first, second))
      : undefined,
  component: lazyPage(() => import("./ComparePage"), "ComparePage"),
});

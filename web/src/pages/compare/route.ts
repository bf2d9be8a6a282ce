import { createRoute } from "@tanstack/react-router";
import { anyComparisonQuery, comparisonQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { anySearch, compareSearch } from "./search";

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

export const compareAnyRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/compare/any",
  ...anySearch,
  loaderDeps: ({ search: { left, right } }) => ({ left, right }),
  loader: ({ context, deps: { left, right } }) =>
    left && right ? void context.client.prefetchQuery(anyComparisonQuery(left, right)) : undefined,
  component: lazyPage(() => import("./AnyPage"), "AnyPage"),
});

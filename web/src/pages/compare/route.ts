import { createRoute } from "@tanstack/react-router";
import { comparisonQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { compareSearch } from "./search";

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

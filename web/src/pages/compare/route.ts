import { createRoute } from "@tanstack/react-router";
import { anyComparisonQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { compareSearch } from "./search";

export const compareRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/compare",
  ...compareSearch,
  loaderDeps: ({ search: { left, right } }) => ({ left, right }),
  loader: ({ context: { client }, deps: { left, right } }) => {
    if (left && right && left !== right) void client.prefetchQuery(anyComparisonQuery(left, right));
  },
  component: lazyPage(() => import("./ComparePage"), "ComparePage"),
});

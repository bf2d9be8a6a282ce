import { createRoute } from "@tanstack/react-router";
import { treesQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";

export const treesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/trees",
  loader: ({ context }) => void context.client.prefetchQuery(treesQuery),
  component: lazyPage(() => import("./TreesPage"), "TreesPage"),
});

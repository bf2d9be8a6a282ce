import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

export const treesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/trees",
  component: lazyRouteComponent(() => import("./TreesPage"), "TreesPage"),
});

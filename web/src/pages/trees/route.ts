import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";

export const treesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/trees",
  component: lazyPage(() => import("./TreesPage"), "TreesPage"),
});

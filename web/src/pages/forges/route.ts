import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";

export const forgesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/forges",
  component: lazyPage(() => import("./ForgesPage"), "ForgesPage"),
});

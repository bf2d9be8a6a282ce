import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

export const labRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lab",
  component: lazyRouteComponent(() => import("./LabPage"), "LabPage"),
});

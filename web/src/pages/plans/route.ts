import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

export const plansRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/plans",
  component: lazyRouteComponent(() => import("./PlansPage"), "PlansPage"),
});

export const planRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/plans/$name",
  component: lazyRouteComponent(() => import("./PlanPage"), "PlanPage"),
});

import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";

export const plansRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/plans",
  component: lazyPage(() => import("./PlansPage"), "PlansPage"),
});

export const planRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/plans/$name",
  component: lazyPage(() => import("./PlanPage"), "PlanPage"),
});

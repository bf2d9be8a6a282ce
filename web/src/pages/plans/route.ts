import { createRoute } from "@tanstack/react-router";
import { planQuery, plansQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";

export const plansRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/plans",
  loader: ({ context }) => void context.client.prefetchQuery(plansQuery),
  component: lazyPage(() => import("./PlansPage"), "PlansPage"),
});

export const planRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/plans/$name",
  loader: ({ context, params }) => void context.client.prefetchQuery(planQuery(params.name)),
  component: lazyPage(() => import("./PlanPage"), "PlanPage"),
});

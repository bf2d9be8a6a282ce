import { createRoute } from "@tanstack/react-router";
import { planQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";

export const planRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/plans/$name",
  loader: ({ context, params }) => void context.client.prefetchQuery(planQuery(params.name)),
  component: lazyPage(() => import("./PlanPage"), "PlanPage"),
});

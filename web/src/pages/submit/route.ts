import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

export const submitRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submit",
  component: lazyRouteComponent(() => import("./SubmitPage"), "SubmitPage"),
});

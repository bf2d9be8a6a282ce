import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";
import { searchParams } from "@/lib/search";
import { LIST } from "./search";

export const submissionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions",
  ...searchParams(LIST),
  component: lazyRouteComponent(() => import("./SubmissionsPage"), "SubmissionsPage"),
});

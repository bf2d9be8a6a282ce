import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";

export const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  component: lazyPage(() => import("./HomePage"), "HomePage"),
});

import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams, whole } from "@/lib/search";

export const compareRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/compare",
  ...searchParams({ first: whole({ min: 1 }), second: whole({ min: 1 }) }),
  component: lazyPage(() => import("./ComparePage"), "ComparePage"),
});

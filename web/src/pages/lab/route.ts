import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";

export const labRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lab",
  component: lazyPage(() => import("./LabPage"), "LabPage"),
});

import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams } from "@/lib/search";
import { LIST_PARAMS } from "./search";

export const submissionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions",
  ...searchParams(LIST_PARAMS),
  component: lazyPage(() => import("./SubmissionsPage"), "SubmissionsPage"),
});

import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams, text } from "@/lib/search";

export const accountRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/account",
  ...searchParams({ cursor: text(100) }),
  component: lazyPage(() => import("./AccountPage"), "AccountPage"),
});

import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";
import { searchParams, text } from "@/lib/search";

export const adminUsersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/admin/users",
  ...searchParams({ q: text(100), cursor: text(100) }),
  component: lazyRouteComponent(() => import("./UsersPage"), "UsersPage"),
});

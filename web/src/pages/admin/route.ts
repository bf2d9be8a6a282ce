import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams, text } from "@/lib/search";

export const adminUsersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/admin/users",
  ...searchParams({ q: text(100), cursor: text(100) }),
  component: lazyPage(() => import("./UsersPage"), "UsersPage"),
});

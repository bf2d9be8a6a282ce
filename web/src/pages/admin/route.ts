import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams, text } from "@/lib/search";
import { AUDIT_PARAMS } from "./audit";

export const adminUsersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/admin/users",
  ...searchParams({ q: text(100), cursor: text(100) }),
  component: lazyPage(() => import("./UsersPage"), "UsersPage"),
});

export const auditRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/admin/audit",
  ...searchParams(AUDIT_PARAMS),
  component: lazyPage(() => import("./AuditPage"), "AuditPage"),
});

export const adminLabsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/admin/labs",
  component: lazyPage(() => import("./LabsPage"), "LabsPage"),
});

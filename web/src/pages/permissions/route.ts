import { createRoute } from "@tanstack/react-router";
import { permissionsQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { flag, searchParams } from "@/lib/search";

export const permissionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/permissions",
  ...searchParams({ all: flag() }),
  loader: ({ context }) => void context.client.prefetchQuery(permissionsQuery),
  component: lazyPage(() => import("./PermissionsPage"), "PermissionsPage"),
});

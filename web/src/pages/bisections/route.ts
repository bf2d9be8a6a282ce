import { createRoute } from "@tanstack/react-router";
import { bisectionQuery } from "@/api/bisectionQueries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { searchParams, text } from "@/lib/search";

export const BISECTIONS_PARAMS = { cursor: text(100) };

export const bisectionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/bisections",
  ...searchParams(BISECTIONS_PARAMS),
  component: lazyPage(() => import("./BisectionsPage"), "BisectionsPage"),
});

export const bisectionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/bisections/$id",
  ...idParam,
  loader: ({ context, params }) => void context.client.prefetchQuery(bisectionQuery(params.id)),
  component: lazyPage(() => import("./BisectionPage"), "BisectionPage"),
});

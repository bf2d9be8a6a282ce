import { createRoute } from "@tanstack/react-router";
import { bisectionQuery } from "@/api/bisectionQueries";
import { deviceTypesQuery, plansQuery, recipesQuery, treesQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { searchParams, text } from "@/lib/search";
import { NEW_BISECTION } from "./search";

export const BISECTIONS_PARAMS = { cursor: text(100) };

export const bisectionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/bisections",
  ...searchParams(BISECTIONS_PARAMS),
  component: lazyPage(() => import("./BisectionsPage"), "BisectionsPage"),
});

export const newBisectionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/bisections/new",
  ...NEW_BISECTION,
  loader: ({ context }) => {
    void context.client.prefetchQuery(plansQuery);
    void context.client.prefetchQuery(treesQuery);
    void context.client.prefetchQuery(recipesQuery);
    void context.client.prefetchQuery(deviceTypesQuery);
  },
  component: lazyPage(() => import("./NewBisectionPage"), "NewBisectionPage"),
});

export const bisectionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/bisections/$id",
  ...idParam,
  loader: ({ context, params }) => void context.client.prefetchQuery(bisectionQuery(params.id)),
  component: lazyPage(() => import("./BisectionPage"), "BisectionPage"),
});

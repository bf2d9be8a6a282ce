import { createRoute } from "@tanstack/react-router";
import { watchesQuery, watchQuery } from "@/api/watchQueries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams } from "@/lib/search";
import { FORM_PARAMS, WATCH_PARAMS } from "./search";

export const watchesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/watches",
  ...searchParams(FORM_PARAMS),
  loader: ({ context }) => void context.client.prefetchQuery(watchesQuery),
  component: lazyPage(() => import("./WatchesPage"), "WatchesPage"),
});

export const watchRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/watches/$name",
  ...searchParams(WATCH_PARAMS),
  loader: ({ context, params }) => void context.client.prefetchQuery(watchQuery(params.name)),
  component: lazyPage(() => import("./WatchPage"), "WatchPage"),
});

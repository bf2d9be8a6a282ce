import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext } from "@tanstack/react-router";
import { NotFound, RouteError } from "./errors";
import { Shell } from "./Shell";

export interface RouterContext {
  client: QueryClient;
}

export const rootRoute = createRootRouteWithContext<RouterContext>()({
  component: Shell,
  notFoundComponent: NotFound,
  errorComponent: RouteError,
});

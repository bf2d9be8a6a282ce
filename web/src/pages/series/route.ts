import { createRoute } from "@tanstack/react-router";
import { versionsQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";

/** Page of a series; the id is that of any of its submissions. */
export const seriesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/series/$id",
  ...idParam,
  loader: ({ context, params }) => void context.client.prefetchQuery(versionsQuery(params.id)),
  component: lazyPage(() => import("./SeriesPage"), "SeriesPage"),
});

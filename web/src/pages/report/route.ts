import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { reportQuery } from "@/api/queries";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";

export const reportRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions/$id/report",
  ...idParam,
  loader: ({ context, params }) => void context.client.prefetchQuery(reportQuery(params.id)),
  component: lazyRouteComponent(() => import("./ReportPage"), "ReportPage"),
});

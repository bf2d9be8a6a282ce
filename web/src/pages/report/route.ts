import { createRoute, redirect } from "@tanstack/react-router";
import { reportPageQuery } from "@/api/reportPage";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { reportSearch } from "./search";

export const reportRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/r/$id",
  ...idParam,
  ...reportSearch,
  loader: ({ context, params }) => void context.client.prefetchQuery(reportPageQuery(params.id)),
  component: lazyPage(() => import("./ReportPage"), "ReportPage"),
});

/** The address of this page in reports of earlier releases. */
export const formerReportRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions/$id/report",
  ...idParam,
  ...reportSearch,
  beforeLoad: ({ params, search }) => {
    throw redirect({ to: "/r/$id", params, search, replace: true });
  },
});

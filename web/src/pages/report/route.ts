import { createRoute } from "@tanstack/react-router";
import { reportQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { reportSearch } from "./search";

export const reportRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions/$id/report",
  ...idParam,
  ...reportSearch,
  loader: ({ context, params }) => void context.client.prefetchQuery(reportQuery(params.id)),
  component: lazyPage(() => import("./ReportPage"), "ReportPage"),
});

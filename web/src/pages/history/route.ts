import { createRoute } from "@tanstack/react-router";
import { historyLineQuery, historyShiftQuery } from "@/api/historyQueries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { searchParams } from "@/lib/search";
import { HISTORY_PARAMS, VIEW_PARAMS } from "./search";

export const historyRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/history",
  ...searchParams(HISTORY_PARAMS),
  component: lazyPage(() => import("./HistoryPage"), "HistoryPage"),
});

export const lineRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/history/$id",
  ...idParam,
  ...searchParams(VIEW_PARAMS),
  loader: ({ context, params }) => void context.client.prefetchQuery(historyLineQuery(params.id)),
  component: lazyPage(() => import("./LinePage"), "LinePage"),
});

export const shiftRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/history/shifts/$id",
  ...idParam,
  loader: ({ context, params }) => void context.client.prefetchQuery(historyShiftQuery(params.id)),
  component: lazyPage(() => import("./ShiftPage"), "ShiftPage"),
});

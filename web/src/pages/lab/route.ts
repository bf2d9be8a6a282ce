import { createRoute } from "@tanstack/react-router";
import { deviceHistoryQuery, deviceQuery, devicesQuery, deviceTypesQuery, labsQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { deviceSearch, HISTORY_PAGE } from "./search";

export const labRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lab",
  loader: ({ context }) => {
    void context.client.prefetchQuery(deviceTypesQuery);
    void context.client.prefetchQuery(devicesQuery);
    void context.client.prefetchQuery(labsQuery);
  },
  component: lazyPage(() => import("./LabPage"), "LabPage"),
});

export const deviceRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lab/$name",
  validateSearch: deviceSearch.validateSearch,
  search: deviceSearch.search,
  loader: ({ context, params }) => {
    void context.client.prefetchQuery(deviceQuery(params.name));
    void context.client.prefetchQuery(deviceTypesQuery);
    void context.client.prefetchQuery(deviceHistoryQuery(params.name, { limit: HISTORY_PAGE }));
  },
  component: lazyPage(() => import("./DevicePage"), "DevicePage"),
});

import { createRoute } from "@tanstack/react-router";
import { deviceHistoryQuery, deviceQuery, devicesQuery, deviceTypesQuery, labsQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { oneOf, searchParams, text, whole } from "@/lib/search";
import { moment, SPANS } from "./window";

/** The timeline's window: so long, up to `until` or, without it, up to now; of one device type or of all. */
const labSearch = searchParams({ span: oneOf(SPANS, "6h"), until: moment(), type: text(100) });

export const labRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lab",
  validateSearch: labSearch.validateSearch,
  search: labSearch.search,
  loader: ({ context }) => {
    void context.client.prefetchQuery(deviceTypesQuery);
    void context.client.prefetchQuery(devicesQuery);
    void context.client.prefetchQuery(labsQuery);
  },
  component: lazyPage(() => import("./LabPage"), "LabPage"),
});

export const HISTORY_PAGE = 25;

/** `cursor`: the page of runs. `run` and `boot`: the console that is read, with its line and what is searched in it. */
const deviceSearch = searchParams({
  cursor: text(100),
  run: whole({ min: 1 }),
  boot: whole({ min: 1 }),
  line: whole({ min: 1 }),
  find: text(),
  view: oneOf(["terminal", "text"], "terminal"),
});

export type DeviceSearch = typeof deviceSearch.defaults;

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

/** The route tree. Each page defines its route in its own folder (`route.ts`). */
import type { QueryClient } from "@tanstack/react-query";
import { createRouter } from "@tanstack/react-router";
import { Pending, RouteError } from "./app/errors";
import { rootRoute } from "./app/root";
import { parseSearch, stringifySearch } from "./lib/search";
import { accountRoute } from "./pages/account/route";
import { adminLabsRoute, adminUsersRoute, auditRoute } from "./pages/admin/route";
import { bisectionRoute, bisectionsRoute, newBisectionRoute } from "./pages/bisections/route";
import { compareRoute } from "./pages/compare/route";
import { forgesRoute } from "./pages/forges/route";
import { historyRoute, lineRoute, shiftRoute } from "./pages/history/route";
import { homeRoute } from "./pages/home/route";
import { deviceRoute, labRoute } from "./pages/lab/route";
import { deliveriesRoute, deliveryRoute, webhooksRoute } from "./pages/outbox/route";
import { planRoute } from "./pages/plans/route";
import { formerReportRoute, reportRoute } from "./pages/report/route";
import { seriesRoute } from "./pages/series/route";
import { signInRoute } from "./pages/signin/route";
import { submissionRoute } from "./pages/submission/route";
import { submissionsRoute } from "./pages/submissions/route";
import { submitRoute } from "./pages/submit/route";
import { watchesRoute, watchRoute } from "./pages/watches/route";

const routeTree = rootRoute.addChildren([
  homeRoute,
  submitRoute,
  submissionsRoute,
  submissionRoute,
  seriesRoute,
  reportRoute,
  formerReportRoute,
  compareRoute,
  labRoute,
  deviceRoute,
  planRoute,
  historyRoute,
  lineRoute,
  shiftRoute,
  bisectionsRoute,
  newBisectionRoute,
  bisectionRoute,
  signInRoute,
  accountRoute,
  adminUsersRoute,
  auditRoute,
  deliveriesRoute,
  deliveryRoute,
  webhooksRoute,
  forgesRoute,
  watchesRoute,
  watchRoute,
  adminLabsRoute,
]);

export function makeRouter(client: QueryClient) {
  return createRouter({
    routeTree,
    context: { client },
    parseSearch,
    stringifySearch,
    // Hovering a link loads its page's code and data; Query decides whether cached data are fresh.
    defaultPreload: "intent",
    defaultPreloadStaleTime: 0,
    // Fast responses show no skeleton.
    defaultPendingMs: 300,
    defaultPendingMinMs: 300,
    defaultPendingComponent: Pending,
    defaultErrorComponent: RouteError,
    scrollRestoration: true,
    defaultStructuralSharing: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}

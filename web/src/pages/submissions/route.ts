import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";
import { day, oneOf, searchParams, text } from "@/lib/search";

export const OUTCOMES = ["passed", "failed", "canceled"] as const;
export const STATES = ["applying", "building", "running", "comparing", "finished"] as const;

export const submissionsSearch = searchParams({
  q: text(),
  state: oneOf(STATES),
  outcome: oneOf(OUTCOMES),
  tree: text(100),
  owner: text(100),
  plan: text(100),
  device_type: text(100),
  since: day(),
  until: day(),
  cursor: text(100),
});

export const submissionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions",
  ...submissionsSearch,
  component: lazyRouteComponent(() => import("./SubmissionsPage"), "SubmissionsPage"),
});

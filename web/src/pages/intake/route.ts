import { createRoute } from "@tanstack/react-router";
import { ruleQuery, rulesQuery, watchedTreeQuery, watchedTreesQuery } from "@/api/intakeQueries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams } from "@/lib/search";
import { FORM_PARAMS, RULE_PARAMS, WATCHED_TREE_PARAMS } from "./search";

export const rulesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/rules",
  ...searchParams(FORM_PARAMS),
  loader: ({ context }) => void context.client.prefetchQuery(rulesQuery),
  component: lazyPage(() => import("./RulesPage"), "RulesPage"),
});

export const ruleRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/rules/$name",
  ...searchParams(RULE_PARAMS),
  loader: ({ context, params }) => void context.client.prefetchQuery(ruleQuery(params.name)),
  component: lazyPage(() => import("./RulePage"), "RulePage"),
});

export const watchedTreesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/watched-trees",
  ...searchParams(FORM_PARAMS),
  loader: ({ context }) => void context.client.prefetchQuery(watchedTreesQuery),
  component: lazyPage(() => import("./WatchedTreesPage"), "WatchedTreesPage"),
});

export const watchedTreeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/watched-trees/$name",
  ...searchParams(WATCHED_TREE_PARAMS),
  loader: ({ context, params }) => void context.client.prefetchQuery(watchedTreeQuery(params.name)),
  component: lazyPage(() => import("./WatchedTreePage"), "WatchedTreePage"),
});

import { createRoute } from "@tanstack/react-router";
import { deviceTypesQuery, plansQuery, recipesQuery, treesQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { oneOf, searchParams, text, texts } from "@/lib/search";

export const SOURCES = ["git", "mbox", "settings"] as const;

/** The whole form but an mbox's text: a filled-in form can be linked, and no sign-in or reload empties it. */
export const submitSearch = searchParams({
  source: oneOf(SOURCES, "git"),
  git: text(2000),
  ref: text(300),
  base: text(300),
  tree: text(64),
  plan: texts(64),
  type: texts(64),
  /** Targets that plans and device types would make and that are not wanted: `plan@type`. */
  without: texts(),
  /** `HOLDER:NAME`, where the holder is a plan, or `plan@type` for what differs on one device type. */
  scenario: texts(),
  /** `HOLDER:scope=cache,strict=1` */
  setting: texts(),
  /** `HOLDER:name=value` */
  param: texts(400),
  blocks: text(10),
  priority: text(10),
  /** Empty: each device type's own. */
  recipe: text(64),
  backend: text(64),
});

export const submitRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submit",
  ...submitSearch,
  loader: ({ context: { client } }) => {
    void client.prefetchQuery(plansQuery);
    void client.prefetchQuery(treesQuery);
    void client.prefetchQuery(recipesQuery);
    void client.prefetchQuery(deviceTypesQuery);
  },
  component: lazyPage(() => import("./SubmitPage"), "SubmitPage"),
});

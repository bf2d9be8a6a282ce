import { createRoute } from "@tanstack/react-router";
import { deviceTypesQuery, plansQuery, recipesQuery, treesQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { submitSearch } from "./search";

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

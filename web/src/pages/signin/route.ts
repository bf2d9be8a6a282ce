import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";
import { searchParams, text } from "@/lib/search";

export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  ...searchParams({
    /** Where to go then: a path of this lab. */
    next: text(2000),
  }),
  component: lazyRouteComponent(() => import("./SignInPage"), "SignInPage"),
});

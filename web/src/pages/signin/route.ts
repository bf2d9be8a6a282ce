import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams, text } from "@/lib/search";

export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  ...searchParams({
    /** Where to go then: a path of this lab. */
    next: text(8000),
  }),
  component: lazyPage(() => import("./SignInPage"), "SignInPage"),
});

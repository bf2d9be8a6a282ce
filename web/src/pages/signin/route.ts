import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams, text } from "@/lib/search";

export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  ...searchParams({
    /** Path to open after signing in. */
    next: text(8000),
  }),
  component: lazyPage(() => import("./SignInPage"), "SignInPage"),
});

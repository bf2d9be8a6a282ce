import { createRoute } from "@tanstack/react-router";
import { stepsQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { oneOf, searchParams, text, whole } from "@/lib/search";

/** What the page shows of the submission; without any of `step`, `build`, `run` and `boot` it follows what goes on. */
export const submissionSearch = searchParams({
  step: oneOf(["series"]),
  build: whole({ min: 1 }),
  run: whole({ min: 1 }),
  boot: whole({ min: 1 }),
  line: whole({ min: 1 }),
  find: text(),
  view: oneOf(["terminal", "text"], "terminal"),
});

export const submissionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions/$id",
  ...idParam,
  validateSearch: submissionSearch.validateSearch,
  search: submissionSearch.search,
  // Begins with the page's code, not after it; the page itself waits and shows what goes wrong.
  loader: ({ context, params }) => void context.client.prefetchQuery(stepsQuery(params.id)),
  component: lazyPage(() => import("./SubmissionPage"), "SubmissionPage"),
});

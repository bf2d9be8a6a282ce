import { createRoute } from "@tanstack/react-router";
import { stepsQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { submissionSearch } from "./search";

export const submissionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions/$id",
  ...idParam,
  validateSearch: submissionSearch.validateSearch,
  search: submissionSearch.search,
  // Load data in parallel with the page's code; the page itself waits for it and shows errors.
  loader: ({ context, params }) => void context.client.prefetchQuery(stepsQuery(params.id)),
  component: lazyPage(() => import("./SubmissionPage"), "SubmissionPage"),
});

import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { submissionQuery } from "@/api/queries";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";

export const submissionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/submissions/$id",
  ...idParam,
  // Begins with the page's code, not after it; the page itself waits and shows what goes wrong.
  loader: ({ context, params }) => void context.client.prefetchQuery(submissionQuery(params.id)),
  component: lazyRouteComponent(() => import("./SubmissionPage"), "SubmissionPage"),
});

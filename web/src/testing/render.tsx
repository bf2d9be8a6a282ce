/** Render a component with Query, Theme and a router: without routes, or with the one that the component reads. */
import { QueryClientProvider } from "@tanstack/react-query";
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from "@tanstack/react-router";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { makeQueryClient } from "@/api/queries";
import { Theme } from "@/app/theme";

export async function renderPart(part: ReactNode, { at = "/", route }: { at?: string; route?: object } = {}) {
  const client = makeQueryClient();
  const component = () => part;
  const root = createRootRoute(route ? {} : { component, notFoundComponent: component });
  if (route) root.addChildren([createRoute({ getParentRoute: () => root, component, ...route } as never)]);
  const router = createRouter({
    routeTree: root,
    history: createMemoryHistory({ initialEntries: [at] }),
  });
  await router.load();
  const result = render(
    <QueryClientProvider client={client}>
      <Theme>
        <RouterProvider router={router as never} />
      </Theme>
    </QueryClientProvider>,
  );
  return { ...result, client, router };
}

/** Render a component with Query, Theme and a router without routes. */
import { QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { makeQueryClient } from "@/api/queries";
import { Theme } from "@/app/theme";

export async function renderPart(part: ReactNode, { at = "/" } = {}) {
  const client = makeQueryClient();
  const router = createRouter({
    routeTree: createRootRoute({ component: () => part, notFoundComponent: () => part }),
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

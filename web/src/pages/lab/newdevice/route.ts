import { createRoute } from "@tanstack/react-router";
import { deviceTypesQuery, labsQuery } from "@/api/queries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { searchParams, whole } from "@/lib/search";

export const newDeviceRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/new-device",
  ...searchParams({ trial: whole({ min: 1 }) }),
  loader: ({ context }) => {
    void context.client.prefetchQuery(labsQuery);
    void context.client.prefetchQuery(deviceTypesQuery);
  },
  component: lazyPage(() => import("./NewDevicePage"), "NewDevicePage"),
});

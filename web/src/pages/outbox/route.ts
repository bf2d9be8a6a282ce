import { createRoute } from "@tanstack/react-router";
import { deliveryQuery } from "@/api/outboxQueries";
import { lazyPage } from "@/app/lazyPage";
import { rootRoute } from "@/app/root";
import { idParam } from "@/lib/params";
import { searchParams, text } from "@/lib/search";
import { DELIVERY_PARAMS } from "./search";

export const deliveriesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/deliveries",
  ...searchParams(DELIVERY_PARAMS),
  component: lazyPage(() => import("./DeliveriesPage"), "DeliveriesPage"),
});

export const deliveryRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/deliveries/$id",
  ...idParam,
  loader: ({ context, params }) => void context.client.prefetchQuery(deliveryQuery(params.id)),
  component: lazyPage(() => import("./DeliveryPage"), "DeliveryPage"),
});

export const webhooksRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/webhooks",
  ...searchParams({ cursor: text(100) }),
  component: lazyPage(() => import("./WebhooksPage"), "WebhooksPage"),
});

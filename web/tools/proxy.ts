// Proxy of the development server: forward the API's paths to the API process at WQLAB_URL.
import type { ServerResponse } from "node:http";
import type { ProxyOptions } from "vite";

/** Paths that the API process serves; see RESERVED in server/wqlab_server/http/static_pages.py. */
const API_PATHS = "^/(?:api|r|docs)(?:[/?]|$)|^/(?:healthz|readyz|metrics|redoc|openapi\\.json)(?:[?]|$)";

/**
 * Return Vite's proxy table. Host, Origin and cookies are forwarded unchanged, so that the browser and the
 * server agree on the origin. Responses are streamed, which server-sent events need.
 */
export function apiProxy(target: string): Record<string, ProxyOptions> {
  return {
    [API_PATHS]: {
      target,
      changeOrigin: false,
      // The page of a report is the application's, which then requests the report.
      bypass: request =>
        /^\/r\/\d+(?:[?]|$)/.test(request.url ?? "") && request.headers.accept?.includes("text/html")
          ? "/index.html"
          : undefined,
      configure(proxy) {
        // Vite answers 500 if the API process is down; the pages expect the 502 of a gateway, and then reconnect.
        proxy.on("error", (_error, _request, response) => {
          if (!("writeHead" in response) || response.headersSent) return;
          (response as ServerResponse).writeHead(502, { "Content-Type": "text/plain" }).end();
        });
      },
    },
  };
}

/** REST client: typed by the generated schema, throws errors, sends the CSRF token with requests that change data. */
import createClient, { type Middleware } from "openapi-fetch";
import { markReachable, markUnreachable } from "./connection";
import type { paths } from "./gen/schema";
import { errorOf, Unreachable } from "./problem";

export const CSRF_HEADER = "X-CSRF-Token";
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

let csrf = "";

/** Set the session's CSRF token, as returned by `GET /api/v1/session`. */
export function setCsrf(token: string): void {
  csrf = token;
}

const sessionMiddleware: Middleware = {
  onRequest({ request }) {
    if (!SAFE.has(request.method) && csrf) request.headers.set(CSRF_HEADER, csrf);
    return request;
  },
  onResponse: ({ response }) => throwUnlessOk(response),
  onError: ({ error }) => connectionError(error),
};

async function throwUnlessOk(response: Response): Promise<undefined> {
  if (response.ok) {
    markReachable();
    return;
  }
  const error = errorOf(response, await parseJson(response.clone()));
  if (error instanceof Unreachable) markUnreachable();
  else markReachable();
  throw error;
}

function connectionError(error: unknown): Unreachable | undefined {
  if (error instanceof DOMException && error.name === "AbortError") return;
  markUnreachable();
  return new Unreachable(error);
}

/** Return the response to a request outside the REST API. Throws the same errors as `api`. */
export async function checked(request: Promise<Response>): Promise<Response> {
  const response = await request.catch(error => {
    throw connectionError(error) ?? error;
  });
  await throwUnlessOk(response);
  return response;
}

/** The typed client: `const { data } = await api.GET("/api/v1/plans")`. Throws ApiError or Unreachable. */
export const api = createClient<paths>({
  baseUrl: typeof location === "undefined" ? "" : location.origin,
  credentials: "same-origin",
  // Resolved at each call, so that tests can replace it.
  fetch: request => globalThis.fetch(request),
});
api.use(sessionMiddleware);

/** Return a response's data. Throws if the response has no content. */
export async function dataOf<T>(request: Promise<{ data?: T; response: Response }>): Promise<T> {
  const { data, response } = await request;
  if (data === undefined) throw errorOf(response, undefined);
  return data;
}

async function parseJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

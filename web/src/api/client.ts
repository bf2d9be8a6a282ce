/** The one way to the REST API: typed by the generated schema, errors thrown, CSRF token sent with what changes something. */
import createClient, { type Middleware } from "openapi-fetch";
import { contactLost, contactMade } from "./connection";
import type { paths } from "./gen/schema";
import { errorOf, Unreachable } from "./problem";

export const CSRF_HEADER = "X-CSRF-Token";
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

let csrf = "";

/** The session's token, as `GET /api/v1/session` gave it. */
export function setCsrf(token: string): void {
  csrf = token;
}

const asTheSession: Middleware = {
  onRequest({ request }) {
    if (!SAFE.has(request.method) && csrf) request.headers.set(CSRF_HEADER, csrf);
    return request;
  },
  async onResponse({ response }) {
    if (response.ok) {
      contactMade();
      return;
    }
    const error = errorOf(response, await json(response.clone()));
    if (error instanceof Unreachable) contactLost();
    else contactMade();
    throw error;
  },
  onError({ error }) {
    if (error instanceof DOMException && error.name === "AbortError") return;
    contactLost();
    return new Unreachable(error);
  },
};

/** `const { data } = await api.GET("/api/v1/plans")`: throws ApiError or Unreachable, so `data` is there. */
export const api = createClient<paths>({
  baseUrl: typeof location === "undefined" ? "" : location.origin,
  credentials: "same-origin",
  // Looked up at each call, so that tests can put another in its place.
  fetch: request => globalThis.fetch(request),
});
api.use(asTheSession);

/** What an answer holds. `data` is only missing for an answer without content, where nothing should be asked for. */
export async function dataOf<T>(answer: Promise<{ data?: T; response: Response }>): Promise<T> {
  const { data, response } = await answer;
  if (data === undefined) throw errorOf(response, undefined);
  return data;
}

async function json(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { api, dataOf, setCsrf } from "./client";
import { ApiError, fieldError, Unreachable } from "./problem";

let requests: Request[];

/** Replace `fetch`: network and proxy faults cannot be produced by a working lab. */
function stubResponse(make: () => Response | Promise<Response>) {
  vi.stubGlobal("fetch", async (request: Request) => {
    requests.push(request);
    return make();
  });
}

const json = (body: unknown, status = 200, type = "application/json") =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": type } });

beforeEach(() => {
  requests = [];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  setCsrf("");
});

test("only requests that change data carry the CSRF token", async () => {
  setCsrf("secret-of-the-session");
  stubResponse(() => json([]));
  await dataOf(api.GET("/api/v1/plans"));
  await dataOf(api.POST("/api/v1/tokens", { body: { name: "ci", scopes: ["read"] } }));
  expect(requests.map(request => request.headers.get("X-CSRF-Token"))).toEqual([
    null,
    "secret-of-the-session",
  ]);
});

test("an ApiError carries the server's message for each field", async () => {
  const problem = {
    type: "about:blank",
    title: "Unprocessable",
    status: 422,
    detail: "the request has 1 error",
    errors: [{ pointer: "/name", detail: "a token of this name exists" }],
  };
  stubResponse(() => json(problem, 422, "application/problem+json"));
  const error = await dataOf(api.GET("/api/v1/plans")).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 422, message: "name: a token of this name exists" });
  expect(fieldError(error as ApiError, "name")).toBe("a token of this name exists");
  expect(fieldError(error as ApiError, "nam")).toBeUndefined();
});

test("a network error and a gateway's 502 are Unreachable", async () => {
  stubResponse(() => Promise.reject(new TypeError("Failed to fetch")));
  await expect(dataOf(api.GET("/api/v1/plans"))).rejects.toBeInstanceOf(Unreachable);
  stubResponse(() => new Response("<html>Bad Gateway</html>", { status: 502 }));
  await expect(dataOf(api.GET("/api/v1/plans"))).rejects.toBeInstanceOf(Unreachable);
});

test("an error without a problem body names its HTTP status", async () => {
  stubResponse(() => new Response("oops", { status: 500, statusText: "Internal Server Error" }));
  await expect(dataOf(api.GET("/api/v1/plans"))).rejects.toThrow(
    "The lab returned 500 Internal Server Error",
  );
});

test("an aborted request is not reported as a lost connection", async () => {
  stubResponse(() => Promise.reject(new DOMException("aborted", "AbortError")));
  await expect(dataOf(api.GET("/api/v1/plans"))).rejects.toMatchObject({ name: "AbortError" });
});

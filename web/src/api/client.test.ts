import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { api, dataOf, setCsrf } from "./client";
import { ApiError, Unreachable } from "./problem";

let asked: Request[];

/** The lab's next answer: faults of a network or a proxy cannot be had from a lab that works. */
function answer(make: () => Response | Promise<Response>) {
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(request);
    return make();
  });
}

const json = (body: unknown, status = 200, type = "application/json") =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": type } });

beforeEach(() => {
  asked = [];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  setCsrf("");
});

test("what changes something carries the session's token, what reads does not", async () => {
  setCsrf("secret-of-the-session");
  answer(() => json([]));
  await dataOf(api.GET("/api/v1/plans"));
  await dataOf(api.POST("/api/v1/tokens", { body: { name: "ci", scopes: ["read"] } }));
  expect(asked.map(request => request.headers.get("X-CSRF-Token"))).toEqual([null, "secret-of-the-session"]);
});

test("a refusal is the server's own words, field by field", async () => {
  const problem = {
    type: "about:blank",
    title: "Unprocessable",
    status: 422,
    detail: "the request has 1 mistake",
    errors: [{ pointer: "/name", detail: "a token of this name exists" }],
  };
  answer(() => json(problem, 422, "application/problem+json"));
  const error = await dataOf(api.GET("/api/v1/plans")).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 422, message: "the request has 1 mistake" });
  expect((error as ApiError).field("/name")).toBe("a token of this name exists");
  expect((error as ApiError).field("/other")).toBeUndefined();
});

test("a broken connection and a proxy's own answer are nobody's refusal", async () => {
  answer(() => Promise.reject(new TypeError("Failed to fetch")));
  await expect(dataOf(api.GET("/api/v1/plans"))).rejects.toBeInstanceOf(Unreachable);
  answer(() => new Response("<html>Bad Gateway</html>", { status: 502 }));
  await expect(dataOf(api.GET("/api/v1/plans"))).rejects.toBeInstanceOf(Unreachable);
});

test("an error without words still says its number", async () => {
  answer(() => new Response("oops", { status: 500, statusText: "Internal Server Error" }));
  await expect(dataOf(api.GET("/api/v1/plans"))).rejects.toThrow(
    "The lab answered 500 Internal Server Error",
  );
});

test("a request that the page takes back is no lost connection", async () => {
  answer(() => Promise.reject(new DOMException("taken back", "AbortError")));
  await expect(dataOf(api.GET("/api/v1/plans"))).rejects.toMatchObject({ name: "AbortError" });
});

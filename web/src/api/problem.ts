/** Errors of a request: the server's problem details (RFC 9457), or a failed connection. */
import { humanize } from "@/lib/words";
import type { Problem } from "./types";

export class ApiError extends Error {
  readonly status: number;
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(mistakesOf(problem) || problem.detail || problem.title);
    this.name = "ApiError";
    this.status = problem.status;
    this.problem = problem;
  }

  get signInNeeded(): boolean {
    return this.status === 401;
  }
}

/** Return the server's messages for a field of the request and for its entries: `/targets` and `/targets/0`. */
export function fieldError(error: Error | null, field: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const found = (error.problem.errors ?? []).filter(each => `${each.pointer}/`.startsWith(`/${field}/`));
  return [...new Set(found.map(each => each.detail))].join("; ") || undefined;
}

/** Return each mistake with the field that it is in: `scopes: select at least one`. */
function mistakesOf({ errors }: Problem): string {
  return (errors ?? [])
    .map(({ pointer, parameter, detail }) => {
      const field = (pointer ?? parameter ?? "").split("/").findLast(part => part && !/^\d+$/.test(part));
      return field ? `${humanize(field)}: ${detail}` : detail;
    })
    .join("; ");
}

/** The lab did not answer, or a gateway answered in its place. */
export class Unreachable extends Error {
  constructor(cause?: unknown) {
    super("The lab is not responding.", { cause });
    this.name = "Unreachable";
  }
}

/** Status codes that a gateway sends when the lab itself does not answer. */
const GATEWAY_STATUSES = new Set([502, 503, 504]);

/** Return the error for a response that is not ok. `body` is the parsed JSON body, or undefined. */
export function errorOf(response: Response, body: unknown): ApiError | Unreachable {
  if (isProblem(body)) return new ApiError(body);
  if (GATEWAY_STATUSES.has(response.status)) return new Unreachable();
  const detail = `The lab returned ${response.status} ${response.statusText}`.trimEnd();
  return new ApiError({ type: "about:blank", title: detail, status: response.status, detail, errors: [] });
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "title" in body && "status" in body && "detail" in body;
}

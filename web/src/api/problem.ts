/** Errors of a request: the server's problem details (RFC 9457), or a failed connection. */
import type { Problem } from "./types";

export class ApiError extends Error {
  readonly status: number;
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.name = "ApiError";
    this.status = problem.status;
    this.problem = problem;
  }

  /** The server's message for a field of the request body, by its JSON pointer (`/series/git/url`). */
  field(pointer: string): string | undefined {
    return this.problem.errors?.find(error => error.pointer === pointer)?.detail;
  }

  get signInNeeded(): boolean {
    return this.status === 401;
  }
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

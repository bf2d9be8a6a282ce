/** What went wrong with a request, as the server said it (RFC 9457) or as the connection did. */
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

  /** The server's sentence for a field of the request body, by its JSON pointer: `/series/git/url`. */
  field(pointer: string): string | undefined {
    return this.problem.errors?.find(error => error.pointer === pointer)?.detail;
  }

  get signInNeeded(): boolean {
    return this.status === 401;
  }
}

/** The lab did not answer at all, or something between here and it answered in its place. */
export class Unreachable extends Error {
  constructor(cause?: unknown) {
    super("The lab does not answer.", { cause });
    this.name = "Unreachable";
  }
}

/** A proxy's 502 to 504 is no word of the lab's. */
const GATEWAY = new Set([502, 503, 504]);

/** The error for an answer that is not ok. `body` is what came, parsed where it was JSON. */
export function errorOf(response: Response, body: unknown): ApiError | Unreachable {
  if (isProblem(body)) return new ApiError(body);
  if (GATEWAY.has(response.status)) return new Unreachable();
  const detail = `The lab answered ${response.status} ${response.statusText}`.trimEnd();
  return new ApiError({ type: "about:blank", title: detail, status: response.status, detail, errors: [] });
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "title" in body && "status" in body && "detail" in body;
}

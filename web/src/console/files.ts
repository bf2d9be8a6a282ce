/** Complete text files: the log of a build, a series. */
import { queryOptions } from "@tanstack/react-query";
import { markReachable, markUnreachable } from "@/api/connection";
import { errorOf, Unreachable } from "@/api/problem";
import { Log } from "./log";

export const buildLogUrl = (buildId: number) => `/api/v1/builds/${buildId}/log`;
export const seriesUrl = (submissionId: number) => `/api/v1/submissions/${submissionId}/series`;

/** Query for a file as a Log; cached forever, because files never change. */
export const fileQuery = (url: string) =>
  queryOptions({
    throwOnError: false,
    queryKey: ["file", url],
    queryFn: async ({ signal }) => {
      const log = new Log();
      log.append(await fetchBytes(url, signal));
      log.setState("ended");
      return log;
    },
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });

async function fetchBytes(url: string, signal: AbortSignal): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", signal });
  } catch (error) {
    if (!signal.aborted) markUnreachable();
    throw new Unreachable(error);
  }
  if (!response.ok) throw errorOf(response, await response.json().catch(() => undefined));
  markReachable();
  return new Uint8Array(await response.arrayBuffer());
}

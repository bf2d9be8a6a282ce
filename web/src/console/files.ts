/** Texts that are complete: a build's log, a series. */
import { queryOptions } from "@tanstack/react-query";
import { contactLost, contactMade } from "@/api/connection";
import { errorOf, Unreachable } from "@/api/problem";
import { Log } from "./log";

export const buildLogUrl = (buildId: number) => `/api/v1/builds/${buildId}/log`;
export const seriesUrl = (submissionId: number) => `/api/v1/submissions/${submissionId}/series`;

/** A file's text as a log. Files never change. */
export const fileQuery = (url: string) =>
  queryOptions({
    queryKey: ["file", url],
    queryFn: async ({ signal }) => {
      const log = new Log();
      log.append(await bytesOf(url, signal));
      log.become("ended");
      return log;
    },
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });

async function bytesOf(url: string, signal: AbortSignal): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", signal });
  } catch (error) {
    if (!signal.aborted) contactLost();
    throw new Unreachable(error);
  }
  if (!response.ok) throw errorOf(response, await response.json().catch(() => undefined));
  contactMade();
  return new Uint8Array(await response.arrayBuffer());
}

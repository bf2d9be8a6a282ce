/** The page of a report as the server writes it: its first screen, and the report as data and as text. */
import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { checked } from "./client";
import type { Report } from "./types";

export interface ReportPage {
  /** Elements of the first screen, as HTML in which the server has escaped all input. */
  first: string;
  report: Report;
  /** The report for a mailing list. */
  text: string;
}

/** The page of a report. That of a finished submission never changes. */
export const reportPageQuery = (id: number) =>
  queryOptions({
    queryKey: ["submission", id, "report"],
    queryFn: async ({ signal }): Promise<ReportPage> => {
      const response = await checked(fetch(new URL(`/r/${id}`, location.origin), { signal }));
      const found = readPage(new DOMParser().parseFromString(await response.text(), "text/html"));
      if (!found) throw new Error("The lab answered without a report.");
      return found;
    },
    staleTime: ({ state }) =>
      state.data?.report.submission.state === "finished" ? Number.POSITIVE_INFINITY : 10_000,
  });

/** Return the report in a page; null if the page is another one. */
function readPage(page: Document): ReportPage | null {
  const data = page.getElementById("report")?.textContent;
  const first = page.querySelector(".report-first")?.innerHTML;
  return data && first !== undefined ? { first, ...JSON.parse(data) } : null;
}

/** Put the report in the page that the browser loaded into the cache. Return false if the page has none. */
export function takeEmbeddedReport(client: QueryClient, page: Document): boolean {
  const found = readPage(page);
  if (found) client.setQueryData(reportPageQuery(found.report.submission.id).queryKey, found);
  return found !== null;
}

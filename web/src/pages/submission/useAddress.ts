import { getRouteApi, useNavigate, useRouter } from "@tanstack/react-router";
import { useCallback } from "react";
import type { LogAddress } from "@/console/LogView";
import { pinned, type Selection, type SubmissionSearch } from "./selection";

const route = getRouteApi("/submissions/$id");

/** A log's part of the page's address. Choosing a line also pins what it is a line of, so that the address stays true. */
export function useLogAddress(selection: Selection) {
  const search = route.useSearch();
  const navigate = useNavigate({ from: "/submissions/$id" });
  const router = useRouter();
  const { id } = route.useParams();
  const fixed = JSON.stringify(pinned(selection));
  const searchFor = useCallback(
    (change: Partial<LogAddress>): SubmissionSearch => {
      const { line, find, view } = search;
      const chosen = change.line == null ? {} : (JSON.parse(fixed) as Partial<SubmissionSearch>);
      return { ...search, ...chosen, line, find, view, ...change };
    },
    [search, fixed],
  );
  const onAddress = useCallback(
    (change: Partial<LogAddress>, replace: boolean) =>
      void navigate({ search: searchFor(change), replace, resetScroll: false }),
    [navigate, searchFor],
  );
  const lineHref = useCallback(
    (line: number | null) =>
      router.buildLocation({
        to: "/submissions/$id",
        params: { id },
        search: { ...searchFor({ line }), ...(JSON.parse(fixed) as Partial<SubmissionSearch>), line },
      }).href,
    [router, id, searchFor, fixed],
  );
  const address: LogAddress = { line: search.line, find: search.find, view: search.view };
  return { address, onAddress, lineHref };
}

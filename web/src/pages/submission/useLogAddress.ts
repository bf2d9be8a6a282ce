import { getRouteApi, useNavigate, useRouter } from "@tanstack/react-router";
import { useCallback } from "react";
import type { LogAddress } from "@/console/LogView";
import type { SubmissionSearch } from "./search";
import { pinned, type Selection } from "./selection";

const route = getRouteApi("/submissions/$id");

/** Log position in the URL. Selecting a line also pins its build or boot, so that the link stays valid. */
export function useLogAddress(selection: Selection) {
  const search = route.useSearch();
  const navigate = useNavigate({ from: "/submissions/$id" });
  const router = useRouter();
  const { id } = route.useParams();
  const fixed = JSON.stringify(pinned(selection));
  const searchFor = useCallback(
    (change: Partial<LogAddress>): SubmissionSearch => {
      const { line, find } = search;
      const chosen = change.line == null ? {} : (JSON.parse(fixed) as Partial<SubmissionSearch>);
      return { ...search, ...chosen, line, find, ...change };
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
  const address: LogAddress = { line: search.line, find: search.find };
  return { address, onAddress, lineHref };
}

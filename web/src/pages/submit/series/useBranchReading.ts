import { useQuery } from "@tanstack/react-query";
import { type BranchToRead, branchReadingQuery } from "@/api/queries";
import { useSession } from "@/api/session";
import type { BranchInspection, SubmissionRequest } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { useDebounced } from "@/parts/useDebounced";

/** Each lookup starts a worker job, so look up only complete URLs, after a pause in typing. */
export const COMPLETE_URL = /^((https|git):\/\/[^/\s]+\/[^/\s]|\/[^/\s])\S*$/;
/** A reading fetches the branch, so wait until its name is probably complete. */
const PAUSE_MS = 1500;

export interface BranchReading {
  /** True if the branch is named and the user may let the lab read it. */
  asked: boolean;
  /** What is known of the branch that is named now. */
  found: BranchInspection | undefined;
  error: Error | null;
}

/** Let a worker read the branch of the form, once its fields have not changed for a while. */
export function useBranchReading({ series, tree }: SubmissionRequest): BranchReading {
  const session = useSession();
  const mayRead = session === null || (session.user?.scopes.includes("submit") ?? false);
  const git = series?.git;
  const named: BranchToRead = { url: git?.url ?? "", ref: git?.ref ?? "", base: git?.base ?? "", tree };
  const key = JSON.stringify(named);
  const settled = useDebounced(key, PAUSE_MS);
  const asked = mayRead && COMPLETE_URL.test(named.url) && named.ref !== "";
  const current = settled === key;
  const reading = useQuery({ ...branchReadingQuery(named), enabled: asked && current, retry: false });
  return {
    asked,
    found: asked && current ? reading.data : undefined,
    error: asked && current ? reading.error : null,
  };
}

/** What is known of a branch, as one line. */
export function readingStatus({ asked, found, error }: BranchReading): string {
  if (!asked) return "";
  if (found?.failure) {
    const { summary, advice } = found.failure;
    return oneLine(`The branch could not be read: ${summary}${advice ? `. ${advice}` : ""}`);
  }
  if (found?.inspection) {
    const patches = count(found.inspection.patches.length, "patch", "patches");
    return `${patches} on top of ${short(found.base_commit)}; the last commit is ${short(found.commit)}.`;
  }
  if (error) return oneLine(`The branch could not be read: ${error.message}`);
  return oneLine(`Reading the branch… ${found?.progress ?? ""}`.trim());
}

const short = (commit: string | null) => commit?.slice(0, 12) ?? "an unknown commit";

import { useQuery } from "@tanstack/react-query";
import { ApiError } from "@/api/problem";
import { branchesQuery } from "@/api/queries";
import { useSession } from "@/api/session";
import type { GitBranches, SubmissionRequest } from "@/api/types";
import { Autocomplete, TextInput } from "@/kit";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { useDebounced } from "@/parts/useDebounced";
import type { Draft } from "../draft/draft";
import { fieldId, useFieldError } from "../draft/FieldError";
import type { ChangeDraft } from "../draft/useDraft";
import classes from "./GitFields.module.css";
import { Inspection } from "./Inspection";
import { COMPLETE_URL, readingStatus, useBranchReading } from "./useBranchReading";

const OFFERED = 200;

interface GitFieldsProps {
  draft: Draft;
  change: ChangeDraft;
  request: SubmissionRequest;
}

export function GitFields({ draft, change, request }: GitFieldsProps) {
  const session = useSession();
  const canLookUp = session === null || (session.user?.scopes.includes("submit") ?? false);
  const url = useDebounced(draft.git.trim());
  const branches = useQuery({
    ...branchesQuery(url),
    enabled: canLookUp && COMPLETE_URL.test(url) && url === draft.git.trim(),
    retry: false,
  });
  const found = url === draft.git.trim() ? branches.data : undefined;
  const reading = useBranchReading(request);
  const inspection = reading.found?.inspection;

  return (
    <div className={classes.fields}>
      <Autocomplete
        id={fieldId("ref")}
        label="Branch or tag"
        placeholder={found?.head ?? "my-branch"}
        data={(found?.branches ?? []).map(branch => branch.name)}
        limit={OFFERED}
        maxDropdownHeight={280}
        autoCapitalize="none"
        spellCheck={false}
        value={draft.ref}
        onChange={ref => change({ ref })}
        error={useFieldError("ref")}
        required
        withAsterisk={false}
      />
      <TextInput
        id={fieldId("base")}
        label="Base commit (optional)"
        placeholder="Merge base with the tree"
        spellCheck={false}
        value={draft.base}
        onChange={event => change({ base: event.currentTarget.value })}
        error={useFieldError("base")}
      />
      <p className={classes.status} role="status">
        {canLookUp
          ? branchStatus(url, branches.isFetching, found, branches.error)
          : "Sign in to choose from the repository's branches, or enter a name."}
      </p>
      <p
        className={classes.status}
        role="status"
        data-failed={reading.found?.failure || reading.error ? "" : undefined}
      >
        {readingStatus(reading)}
      </p>
      {inspection && (
        <div className={classes.patches}>
          <Inspection of={inspection} from="branch" />
        </div>
      )}
    </div>
  );
}

/** Status line of the branch lookup. It is always shown, to avoid layout shifts. */
function branchStatus(
  url: string,
  loading: boolean,
  found: GitBranches | undefined,
  error: Error | null,
): string {
  if (!COMPLETE_URL.test(url)) return "Enter a repository URL to list its branches.";
  if (found?.failure) {
    const { summary, advice } = found.failure;
    return oneLine(`The branches could not be listed: ${summary}${advice ? `. ${advice}` : ""}`);
  }
  if (found) {
    const all = `${found.truncated ? "the first " : ""}${count(found.branches.length, "branch", "branches")}`;
    return `${all} found${found.head ? `; HEAD is ${found.head}` : ""}. You can also enter a tag or commit.`;
  }
  if (loading) return "Loading branches…";
  // Errors in the URL itself are shown at the URL field.
  if (error && !(error instanceof ApiError && error.status === 422))
    return `The branches could not be listed: ${error.message}`;
  return "";
}

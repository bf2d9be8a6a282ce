import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ApiError } from "@/api/problem";
import { branchesQuery } from "@/api/queries";
import { useSession } from "@/api/session";
import type { GitBranches } from "@/api/types";
import { Autocomplete, TextInput } from "@/kit";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import type { Draft } from "../draft/draft";
import { fieldId, useFault } from "../draft/Fault";
import type { ChangeDraft } from "../draft/useDraft";
import classes from "./GitFields.module.css";

/** A worker is sent out for each URL: only for whole ones, when the typing pauses. */
const PAUSE_MS = 700;
const WHOLE_URL = /^((https|git):\/\/[^/\s]+\/[^/\s]|\/[^/\s])\S*$/;
const OFFERED = 200;

export function GitFields({ draft, change }: { draft: Draft; change: ChangeDraft }) {
  const session = useSession();
  const mayAsk = session === null || (session.user?.scopes.includes("submit") ?? false);
  const url = useSettled(draft.git.trim());
  const branches = useQuery({
    ...branchesQuery(url),
    enabled: mayAsk && WHOLE_URL.test(url) && url === draft.git.trim(),
    retry: false,
  });
  const found = url === draft.git.trim() ? branches.data : undefined;

  return (
    <div className={classes.fields}>
      <TextInput
        className={classes.url}
        id={fieldId("git")}
        label="Repository"
        placeholder="https://git.example.org/linux.git"
        type="url"
        inputMode="url"
        autoComplete="url"
        spellCheck={false}
        value={draft.git}
        onChange={event => change({ git: event.currentTarget.value })}
        error={useFault("git")}
        required
        withAsterisk={false}
      />
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
        error={useFault("ref")}
        required
        withAsterisk={false}
      />
      <TextInput
        id={fieldId("base")}
        label="Base commit (if it is not the merge base)"
        placeholder="merge base with the tree"
        spellCheck={false}
        value={draft.base}
        onChange={event => change({ base: event.currentTarget.value })}
        error={useFault("base")}
      />
      <p className={classes.said} role="status">
        {mayAsk
          ? said(url, branches.isFetching, found, branches.error)
          : "Sign in to have the repository's branches offered; a name can be written all the same."}
      </p>
    </div>
  );
}

/** One line, always there, so that nothing moves when the branches come. */
function said(url: string, asking: boolean, found: GitBranches | undefined, error: Error | null): string {
  if (!WHOLE_URL.test(url)) return "The repository's branches are offered once its URL is known.";
  if (found?.failure) {
    const { summary, advice } = found.failure;
    return oneLine(`The branches could not be listed: ${summary}${advice ? `. ${advice}` : ""}`);
  }
  if (found) {
    const all = `${found.truncated ? "the first " : ""}${count(found.branches.length, "branch", "branches")}`;
    return `${all} to choose from${found.head ? `; HEAD is ${found.head}` : ""}. Tags and commits can be written too.`;
  }
  if (asking) return "Asking the repository for its branches …";
  // What is wrong with the URL itself is said at the URL.
  if (error && !(error instanceof ApiError && error.status === 422))
    return `The branches could not be listed: ${error.message}`;
  return "";
}

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

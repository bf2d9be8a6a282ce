import { useQuery } from "@tanstack/react-query";
import { ApiError } from "@/api/problem";
import { threadQuery } from "@/api/queries";
import { useSession } from "@/api/session";
import type { SeriesInspection, ThreadPreview } from "@/api/types";
import { TextInput } from "@/kit";
import { count } from "@/lib/numbers";
import { SERIES } from "@/lib/series";
import { oneLine } from "@/lib/words";
import { Skeleton } from "@/parts/Skeleton";
import { TakenMails } from "@/parts/TakenMails";
import { useDebounced } from "@/parts/useDebounced";
import type { Draft } from "../draft/draft";
import { fieldId, useFieldError } from "../draft/FieldError";
import type { ChangeDraft } from "../draft/useDraft";
import { Inspection } from "./Inspection";
import classes from "./ThreadFields.module.css";

/** Each lookup starts a worker job, so look up only what can name a mail or a series, after a pause in typing. */
const WITH_ID = /[^\s/]@|%40/;
const REVISION = /^([1-9]\d{0,3})?$/;

/** Input for a series that was mailed, and what would be taken of it. */
export function ThreadFields({ draft, change }: { draft: Draft; change: ChangeDraft }) {
  const session = useSession();
  const canLookUp = session === null || (session.user?.scopes.includes("submit") ?? false);
  const typed = draft.message.trim();
  const revision = draft.revision.trim();
  const message = useDebounced(typed);
  const settledRevision = useDebounced(revision);
  const settled = message === typed && settledRevision === revision;
  const preview = useQuery({
    ...threadQuery(message, settledRevision),
    enabled:
      canLookUp &&
      settled &&
      (WITH_ID.test(message) || SERIES.test(message)) &&
      REVISION.test(settledRevision),
    retry: false,
  });
  const found = settled ? preview.data : undefined;
  const inspection = found?.inspection;
  const revisionError = useFieldError("revision");
  const mustShow = revisionError !== undefined || inspection?.usable === false;

  return (
    <div className="stack">
      <p
        className={classes.status}
        role="status"
        data-failed={found?.failure || preview.error ? "" : undefined}
      >
        {canLookUp
          ? status(message, settled && preview.isFetching, found, preview.error)
          : "Sign in to see the mails that would be taken."}
      </p>
      <details open={mustShow || undefined}>
        <summary>{inspection ? titleOf(inspection) : "Revision"}</summary>
        <div className="stack">
          <div className={classes.fields}>
            <TextInput
              id={fieldId("revision")}
              label="Revision (optional)"
              description="2 for [PATCH v2]"
              placeholder="Latest"
              inputMode="numeric"
              value={draft.revision}
              onChange={event => change({ revision: event.currentTarget.value })}
              error={revisionError}
            />
          </div>
          {found?.thread && <TakenMails of={found.thread} />}
          {inspection && <Inspection of={inspection} />}
        </div>
      </details>
      {!found && preview.isFetching && <Skeleton lines={4} />}
    </div>
  );
}

function titleOf({ subject, version, patches, files, problems }: SeriesInspection): string {
  const size = `${count(patches.length, "patch", "patches")} of ${count(files, "file")}`;
  const notes = problems.length > 0 ? `, ${count(problems.length, "remark")}` : "";
  return `${oneLine(subject) || "(no subject)"}, v${version}: ${size}${notes}`;
}

/** Status line of the lookup. It is always shown, to avoid layout shifts. */
function status(
  message: string,
  loading: boolean,
  found: ThreadPreview | undefined,
  error: Error | null,
): string {
  if (!WITH_ID.test(message)) return "Enter a Message-ID to see the mails that would be taken.";
  if (found?.failure) {
    const { summary, advice } = found.failure;
    return oneLine(`The series could not be taken: ${summary}${advice ? `. ${advice}` : ""}`);
  }
  if (found) return "This is what would be taken now.";
  if (loading) return "Looking for the mail…";
  if (error) {
    if (error instanceof ApiError && error.status === 422) return oneLine(error.problem.detail);
    return `The mail could not be looked for: ${error.message}`;
  }
  return "";
}

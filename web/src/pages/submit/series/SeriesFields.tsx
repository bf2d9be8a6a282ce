import { useEffect, useRef, useState } from "react";
import type { SubmissionRequest } from "@/api/types";
import { Button, TextInput } from "@/kit";
import { recogniseSeries } from "@/lib/series";
import type { Draft } from "../draft/draft";
import { FieldError, fieldId, useFieldError } from "../draft/FieldError";
import type { ChangeDraft, MboxState } from "../draft/useDraft";
import { GitFields } from "./GitFields";
import { MboxField } from "./MboxField";
import classes from "./SeriesFields.module.css";
import { ThreadFields } from "./ThreadFields";

interface SeriesFieldsProps {
  draft: Draft;
  change: ChangeDraft;
  request: SubmissionRequest;
  mbox: MboxState;
  mboxKey: string;
}

/** One field that recognises what is typed, or an mbox, or no series. Input for the other kinds is kept. */
export function SeriesFields({ draft, change, request, mbox, mboxKey }: SeriesFieldsProps) {
  const { source } = draft;
  const typed = source === "git" || source === "thread";
  // The other kinds are offered until a series is named.
  const named = source === "thread" || (source === "git" && draft.git !== "");
  return (
    <div className="stack">
      {typed && <Typed draft={draft} change={change} />}
      {source === "git" && draft.git !== "" && <GitFields draft={draft} change={change} request={request} />}
      {source === "thread" && <ThreadFields draft={draft} change={change} />}
      {source === "mbox" && <MboxField mbox={mbox} mboxKey={mboxKey} />}
      {source === "settings" && (
        <p className="muted">
          No series: the tree's kernel runs with each setting, and each is compared with the plan's reference.
          Select the settings to measure under <em>Advanced</em>.
        </p>
      )}
      <FieldError field="source" />
      {!named && (
        <div className={classes.others}>
          {!typed && (
            <Button variant="default" size="xs" onClick={() => change({ source: "git" })}>
              lore URL, Message-ID or git
            </Button>
          )}
          {source !== "mbox" && (
            <Button variant="default" size="xs" onClick={() => change({ source: "mbox" })}>
              Choose an mbox
            </Button>
          )}
          {source !== "settings" && (
            <Button variant="default" size="xs" onClick={() => change({ source: "settings" })}>
              No series, compare settings
            </Button>
          )}
          {source !== "mbox" && <span className="muted">An mbox can also be dropped on this page.</span>}
        </div>
      )}
    </div>
  );
}

/** The text names a mail or a repository; what follows a repository's URL is its branch. */
function Typed({ draft, change }: Pick<SeriesFieldsProps, "draft" | "change">) {
  const known = draft.source === "thread" ? draft.message : draft.git;
  const [text, setText] = useState(known);
  const told = useRef(known);
  // The draft is also changed by Back, by a link, or when it is cleared.
  useEffect(() => {
    if (known === told.current) return;
    told.current = known;
    setText(known);
  }, [known]);
  const gitError = useFieldError("git");
  const messageError = useFieldError("message");
  return (
    <TextInput
      id={fieldId(draft.source === "thread" ? "message" : "git")}
      label="URL of lore or Patchwork, Message-ID, or git URL and branch"
      placeholder="https://lore.kernel.org/r/20260105-my-series-v1-0-abc@kernel.org"
      spellCheck={false}
      autoCapitalize="none"
      autoComplete="off"
      value={text}
      onChange={event => {
        const next = event.currentTarget.value;
        const found = recogniseSeries(next);
        setText(next);
        told.current = found.source === "git" ? found.git : found.message;
        change(found.source === "git" && found.ref === "" ? { source: "git", git: found.git } : found);
      }}
      error={draft.source === "thread" ? messageError : gitError}
      required
      withAsterisk={false}
    />
  );
}

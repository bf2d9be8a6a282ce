import type { SubmissionRequest } from "@/api/types";
import { Radio } from "@/kit";
import type { Draft } from "../draft/draft";
import { FieldError } from "../draft/FieldError";
import type { ChangeDraft, MboxState } from "../draft/useDraft";
import { SOURCES } from "../search";
import { GitFields } from "./GitFields";
import { MboxField } from "./MboxField";
import classes from "./SeriesFields.module.css";
import { ThreadFields } from "./ThreadFields";

const NAMES: Record<Draft["source"], { name: string; description: string }> = {
  git: { name: "Branch", description: "in a public git repository" },
  thread: { name: "Message-ID", description: "of a mailed series, found in an archive" },
  mbox: { name: "Mbox", description: "from git format-patch or b4" },
  settings: { name: "Settings only", description: "no series; compares settings on the tree's kernel" },
};

interface SeriesFieldsProps {
  draft: Draft;
  change: ChangeDraft;
  request: SubmissionRequest;
  mbox: MboxState;
  mboxKey: string;
}

/** Fields for one kind of series. Input for the other kinds is kept. */
export function SeriesFields({ draft, change, request, mbox, mboxKey }: SeriesFieldsProps) {
  return (
    <div className="stack">
      <Radio.Group
        aria-label="Series"
        value={draft.source}
        onChange={source => change({ source: source as Draft["source"] })}
      >
        <div className={classes.sources}>
          {SOURCES.map(source => (
            <Radio
              key={source}
              value={source}
              label={NAMES[source].name}
              description={NAMES[source].description}
            />
          ))}
        </div>
      </Radio.Group>
      <FieldError field="source" />
      {draft.source === "git" && <GitFields draft={draft} change={change} request={request} />}
      {draft.source === "thread" && <ThreadFields draft={draft} change={change} />}
      {draft.source === "mbox" && <MboxField mbox={mbox} mboxKey={mboxKey} />}
      {draft.source === "settings" && (
        <p className="muted">
          Runs the tree's kernel and compares each plan's settings with its reference setting. Select the
          settings to measure under <em>Advanced</em>.
        </p>
      )}
    </div>
  );
}

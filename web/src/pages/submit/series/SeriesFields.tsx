import { Radio } from "@/kit";
import type { Draft } from "../draft/draft";
import { Fault } from "../draft/Fault";
import type { ChangeDraft, MboxState } from "../draft/useDraft";
import { SOURCES } from "../route";
import { GitFields } from "./GitFields";
import { MboxField } from "./MboxField";
import classes from "./SeriesFields.module.css";

const NAMES: Record<Draft["source"], { name: string; what: string }> = {
  git: { name: "A branch", what: "in a public git repository" },
  mbox: { name: "An mbox", what: "as from git format-patch or b4" },
  settings: { name: "Settings only", what: "no series: scopes compared on the tree's kernel" },
};

interface SeriesFieldsProps {
  draft: Draft;
  change: ChangeDraft;
  mbox: MboxState;
  mboxKey: string;
}

/** The kinds exclude each other; what was filled in for one stays while another is looked at. */
export function SeriesFields({ draft, change, mbox, mboxKey }: SeriesFieldsProps) {
  return (
    <div className="stack">
      <Radio.Group
        aria-label="What to test"
        value={draft.source}
        onChange={source => change({ source: source as Draft["source"] })}
      >
        <div className={classes.sources}>
          {SOURCES.map(source => (
            <Radio key={source} value={source} label={NAMES[source].name} description={NAMES[source].what} />
          ))}
        </div>
      </Radio.Group>
      <Fault field="source" />
      {draft.source === "git" && <GitFields draft={draft} change={change} />}
      {draft.source === "mbox" && <MboxField mbox={mbox} mboxKey={mboxKey} />}
      {draft.source === "settings" && (
        <p className="muted">
          One kernel, the tree's own, and every setting in each boot. A plan's settings are compared with its
          reference setting; <em>Advanced</em> says which are measured.
        </p>
      )}
    </div>
  );
}

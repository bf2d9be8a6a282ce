/** Fields of the form of a watch that only one kind has. */
import type { ArchiveView } from "@/api/types";
import { Checkbox, NativeSelect, Radio } from "@/kit";
import type { WatchDraft } from "./draft";
import { bind, type FieldsProps, LinesField, NumberField, TextField } from "./fields";
import { BATCH_MEANING, BATCHES } from "./labels";
import classes from "./watches.module.css";

interface ArchivesProps extends FieldsProps {
  archives: readonly ArchiveView[];
}

// --- lists ---------------------------------------------------------------------------------------------------------

export function ArchiveSelect({ draft, change, at, archives }: ArchivesProps) {
  return (
    <NativeSelect
      label="List"
      description="Archive of the mailing list"
      data={archiveOptions(archives, draft.archive)}
      value={draft.archive}
      onChange={event => change({ archive: event.currentTarget.value })}
      error={at("archive")}
      required
      withAsterisk={false}
    />
  );
}

export function ListFields({ archives, ...fields }: ArchivesProps) {
  const { draft, change, at } = fields;
  return (
    <>
      {archives.length > 0 && !archives.some(each => each.watchable) && (
        <p className={classes.mistake}>
          No archive of the lab can be watched: the operator adds <code>epochs</code> to one in{" "}
          <code>intake/archives.yaml</code>. <a href="/docs/intake/#archives">Archives</a>
        </p>
      )}
      <LinesField
        label="Files"
        description="Files, and folders with / at the end, one a line: a patch must change at least one of them"
        placeholder={"kernel/workqueue.c\nfs/xfs/"}
        {...bind(fields, "paths")}
      />
      <div className="pair">
        <LinesField
          label="Words in subjects"
          description="One entry a line: the cover letter or a patch must have one of them"
          placeholder="workqueue"
          {...bind(fields, "subjects")}
        />
        <LinesField
          label="Authors"
          description="Addresses, or domains such as @example.org, one a line"
          placeholder="ada@example.org"
          {...bind(fields, "authors")}
        />
      </div>
      <p className={classes.description}>
        Each of these that is not empty has to match. Only complete series are taken.
      </p>
      <Checkbox
        label="Only if the cover letter asks"
        description="By a line wqlab: test. A single patch asks in its own text."
        checked={draft.onlyIfAsked}
        onChange={event => change({ onlyIfAsked: event.currentTarget.checked })}
        error={at("only_if_asked")}
      />
      <LinesField
        label="May command by mail"
        description="Addresses, one a line: who may answer the lab's mails with commands, beside the author"
        placeholder="ada@example.org"
        {...bind(fields, "commanders")}
      />
      <Checkbox
        label="Measure what it touches"
        description="The plans and device types that the lab proposes for the files and functions that the series changes."
        checked={draft.whatItTouches}
        onChange={event => change({ whatItTouches: event.currentTarget.checked })}
        error={at("what_it_touches")}
      />
    </>
  );
}

function archiveOptions(archives: readonly ArchiveView[], chosen: string) {
  const known = archives.map(({ name, list, watchable }) => ({
    value: name,
    label: watchable ? (list ? `${name} (${list})` : name) : `${name}: cannot be watched`,
    disabled: !watchable && name !== chosen,
  }));
  const missing = chosen === "" || archives.some(each => each.name === chosen);
  return missing ? known : [{ value: chosen, label: chosen, disabled: false }, ...known];
}

// --- trees ---------------------------------------------------------------------------------------------------------

export function RepositoryField(fields: FieldsProps) {
  return (
    <TextField
      label="Repository"
      description="URL to look at, if not that of the tree"
      placeholder="https://git.kernel.org/pub/scm/linux/kernel/git/tj/wq.git"
      {...bind(fields, "url")}
    />
  );
}

/** `unreadable`: lines of the parameters that are no `name=value`. */
export function TreeFields({ unreadable, ...fields }: FieldsProps & { unreadable: readonly string[] }) {
  const { draft, change, at } = fields;
  return (
    <>
      <div className="pair">
        <LinesField
          label="Branches"
          description="One a line; each is a line of heads"
          placeholder="for-next"
          {...bind(fields, "branches")}
        />
        <LinesField
          label="Tags"
          description="Patterns with * and ?, one a line, in the order of their versions"
          placeholder="v6.12.*"
          {...bind(fields, "tags")}
        />
      </div>
      <Radio.Group
        label="Heads that wait while an earlier one is measured"
        value={draft.batch}
        onChange={value => change({ batch: value as WatchDraft["batch"] })}
        error={at("batch")}
      >
        <div className={classes.choices}>
          {BATCHES.map(batch => (
            <Radio key={batch} value={batch} label={batch} description={BATCH_MEANING[batch]} />
          ))}
        </div>
      </Radio.Group>
      <NumberField
        label="Minutes between looks"
        description="A hook, or Look now, asks for one at once"
        {...bind(fields, "everyMinutes")}
        min={5}
        max={10_080}
      />
      <LinesField
        label="Parameters"
        description="name=value, one a line; they override those of the plans"
        placeholder="jobs=32"
        {...bind(fields, "parameters")}
        {...(unreadable.length > 0 && { error: `Write name=value instead of ${unreadable.join(", ")}` })}
      />
      <div className="pair">
        <NumberField
          label="Blocks"
          description="Empty: as the plans have it"
          {...bind(fields, "blocks")}
          min={1}
          max={100}
          optional
        />
        <NumberField
          label="Priority"
          description="That of people's submissions is 50"
          {...bind(fields, "priority")}
          min={0}
          max={100}
        />
      </div>
    </>
  );
}

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { ruleQuery } from "@/api/intakeQueries";
import { archivesQuery, treesQuery } from "@/api/queries";
import type { ArchiveView, ListRule, RuleView, TreeView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Checkbox, NativeSelect } from "@/kit";
import { CommandBlock } from "@/parts/CommandBlock";
import { FormError } from "@/parts/FormError";
import { Section } from "@/parts/Page";
import { IdentityFields, LinesField, NumberField, QuietHoursField, TargetsField } from "./fields";
import classes from "./intake.module.css";
import { draftOf, fieldError, NEW_RULE, type RuleDraft, ruleOf, ruleYaml } from "./ruleDraft";
import { DAYS } from "./search";

/** Form that adds a rule, or changes `view`. For administrators. `owner`: the account that is suggested. */
export function RuleForm({ view, owner = "" }: { view?: RuleView; owner?: string }) {
  const { data: archives = [] } = useQuery(archivesQuery);
  const { data: trees = [] } = useQuery(treesQuery);
  const [typed, setTyped] = useState(view ? draftOf(view.rule) : { ...NEW_RULE, owner });
  const change = (part: Partial<RuleDraft>) => setTyped(before => ({ ...before, ...part }));
  // What the menus show is what is sent.
  const draft = {
    ...typed,
    archive: typed.archive || (archives.find(each => each.watchable)?.name ?? ""),
    tree: typed.tree || standardTree(trees),
  };
  const rule = ruleOf(draft, view !== undefined && view.enabled_at !== null);
  const save = useSave(view);
  const at = (field: keyof ListRule) => fieldError(save.error, field);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    save.mutate(rule);
  };
  return (
    <>
      <form className={classes.form} onSubmit={submit}>
        <FormError error={save.error} />
        <IdentityFields
          draft={draft}
          change={change}
          at={at}
          named={view !== undefined}
          placeholder="workqueue"
          kinds="rules"
        />
        <div className={classes.pair}>
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
          <NativeSelect
            label="Tree"
            description="Kernel tree to which series are applied"
            data={names(
              trees.map(each => each.tree.name),
              draft.tree,
            )}
            value={draft.tree}
            onChange={event => change({ tree: event.currentTarget.value })}
            error={at("tree")}
          />
        </div>
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
          value={draft.paths}
          onChange={paths => change({ paths })}
          error={at("paths")}
        />
        <div className={classes.pair}>
          <LinesField
            label="Words in subjects"
            description="One entry a line: the cover letter or a patch must have one of them"
            placeholder="workqueue"
            value={draft.subjects}
            onChange={subjects => change({ subjects })}
            error={at("subjects")}
          />
          <LinesField
            label="Authors"
            description="Addresses, or domains such as @example.org, one a line"
            placeholder="ada@example.org"
            value={draft.authors}
            onChange={authors => change({ authors })}
            error={at("authors")}
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
        <Checkbox
          label="Measure what it touches"
          description="The plans and device types that the lab proposes for the files and functions that the series changes."
          checked={draft.whatItTouches}
          onChange={event => change({ whatItTouches: event.currentTarget.checked })}
          error={at("what_it_touches")}
        />
        <TargetsField
          label="Targets"
          description={targetsText(draft)}
          value={draft.targets}
          onChange={targets => change({ targets })}
          error={at("targets")}
          required={!draft.whatItTouches}
        />
        <NumberField
          label="Minutes a day"
          description="Device time that its submissions may start within 24 hours, by their quotes"
          value={draft.minutesADay}
          onChange={minutesADay => change({ minutesADay })}
          error={at("minutes_a_day")}
          min={1}
          max={100_000}
        />
        <QuietHoursField
          description="Times of each day in which it makes no submission; they may reach over midnight"
          value={draft.quietHours}
          onChange={quietHours => change({ quietHours })}
          error={at("quiet_hours")}
        />
        <LinesField
          label="May command by mail"
          description="Addresses, one a line: who may answer the lab's mails with commands, beside the author"
          placeholder="ada@example.org"
          value={draft.commanders}
          onChange={commanders => change({ commanders })}
          error={at("commanders")}
        />
        <div className="row">
          <Button type="submit" loading={save.isPending}>
            {view ? "Save" : "Add rule"}
          </Button>
          {view ? (
            <Link to="/rules/$name" params={{ name: view.rule.name }}>
              Discard changes
            </Link>
          ) : (
            <Link to="/rules">Cancel</Link>
          )}
          {!view && <span className="muted">It is switched off until you have seen what it would take.</span>}
        </div>
      </form>
      <RuleFile rule={rule} />
    </>
  );
}

/** The rule as a file, for those who keep files. */
export function RuleFile({ rule }: { rule: ListRule }) {
  const name = rule.name || "NAME";
  return (
    <Section
      id="file"
      title="As a file"
      lead={
        <>
          The same rule for <code>wqlab rule add {name}.yaml</code>. As <code>intake/rules/{name}.yaml</code>{" "}
          of the data folder it is the operator's, with <code>enabled: true</code> to switch it on.
        </>
      }
    >
      <CommandBlock
        label="Rule as a file"
        commands={[{ name: `${name}.yaml`, text: ruleYaml({ ...rule, name }) }]}
      />
    </Section>
  );
}

function useSave(view: RuleView | undefined) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (body: ListRule) =>
      dataOf(
        view
          ? api.PUT("/api/v1/rules/{name}", { params: { path: { name: view.rule.name } }, body })
          : api.POST("/api/v1/rules", { body }),
      ),
    onSuccess: async made => {
      const { name } = made.rule;
      client.setQueryData(ruleQuery(name).queryKey, made);
      void client.invalidateQueries({ queryKey: ["rules"] });
      toast({ text: view ? `Rule ${name} is changed.` : `Rule ${name} is added. It is switched off.` });
      await navigate({
        to: "/rules/$name",
        params: { name },
        search: made.enabled_at === null ? { days: DAYS } : {},
      });
    },
  });
}

function targetsText({ whatItTouches }: RuleDraft): string {
  if (whatItTouches) return "What may be proposed, as plan@device-type, one a line; empty: everything";
  return "What is measured of each series, as plan@device-type, one a line";
}

function standardTree(trees: readonly TreeView[]): string {
  return (trees.find(each => each.default) ?? trees[0])?.tree.name ?? "";
}

/** Options of a menu; the chosen name stays one if the lab no longer has it, and the server says so. */
function names(known: readonly string[], chosen: string): string[] {
  return chosen === "" || known.includes(chosen) ? [...known] : [chosen, ...known];
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

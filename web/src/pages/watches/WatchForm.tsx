import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { fieldError } from "@/api/problem";
import { archivesQuery, treesQuery } from "@/api/queries";
import type { WatchView } from "@/api/types";
import { watchQuery } from "@/api/watchQueries";
import { toast } from "@/app/toasts";
import { Button, Radio } from "@/kit";
import { CommandBlock } from "@/parts/CommandBlock";
import { FormError } from "@/parts/FormError";
import { Section } from "@/parts/Page";
import { draftOf, NEW_WATCH, specOf, unreadableParameters, type WatchDraft, watchYaml } from "./draft";
import { bind, IdentityFields, NumberField, QuietHoursField, TargetsField, TreeSelect } from "./fields";
import { ArchiveSelect, ListFields, RepositoryField, TreeFields } from "./kindFields";
import { DAYS } from "./search";
import type { WatchSpec } from "./watch";
import classes from "./watches.module.css";

/** Form that adds a watch, or changes `view`. For administrators. `owner`: the account that is suggested. */
export function WatchForm({ view, owner = "" }: { view?: WatchView; owner?: string }) {
  const { data: archives = [] } = useQuery(archivesQuery);
  const { data: trees = [] } = useQuery(treesQuery);
  const [typed, setTyped] = useState(view ? draftOf(view.spec) : { ...NEW_WATCH, owner });
  const [tried, setTried] = useState(false);
  const change = (part: Partial<WatchDraft>) => setTyped(before => ({ ...before, ...part }));
  const ofList = typed.kind === "list";
  // Source packages have no branches.
  const usable = trees.filter(each => ofList || each.tree.url);
  // What the menus show is what is sent.
  const draft = {
    ...typed,
    archive: typed.archive || (archives.find(each => each.watchable)?.name ?? ""),
    tree: typed.tree || ((usable.find(each => each.default) ?? usable[0])?.tree.name ?? ""),
  };
  const spec = specOf(draft, view !== undefined && view.enabled_at !== null);
  const unreadable = ofList ? [] : unreadableParameters(draft.parameters);
  const save = useSave(view);
  const at = (field: string) => fieldError(save.error, field);
  const fields = { draft, change, at };
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setTried(true);
    if (unreadable.length === 0) save.mutate(spec);
  };
  return (
    <>
      <form className="form" onSubmit={submit}>
        <FormError error={save.error} />
        {!view && (
          <Radio.Group
            label="What is watched"
            value={draft.kind}
            onChange={kind => change({ kind: kind as WatchDraft["kind"] })}
          >
            <div className={classes.choices}>
              <Radio value="list" label="A mailing list" description="Series that are mailed are measured." />
              <Radio value="tree" label="A tree" description="New heads of branches and tags are measured." />
            </div>
          </Radio.Group>
        )}
        <IdentityFields {...fields} named={view !== undefined} />
        <div className="pair">
          <TreeSelect
            {...fields}
            known={usable.map(each => each.tree.name)}
            description={
              ofList
                ? "Kernel tree to which series are applied"
                : "Kernel tree of the lab whose mirror has the commits"
            }
          />
          {ofList ? <ArchiveSelect {...fields} archives={archives} /> : <RepositoryField {...fields} />}
        </div>
        {ofList ? (
          <ListFields {...fields} archives={archives} />
        ) : (
          <TreeFields {...fields} unreadable={tried ? unreadable : []} />
        )}
        <TargetsField
          label="Targets"
          description={targetsText(draft)}
          {...bind(fields, "targets")}
          required={!(ofList && draft.whatItTouches)}
        />
        <NumberField
          label="Minutes a day"
          description="Device time that its submissions may start within 24 hours, by their quotes"
          {...bind(fields, "minutesADay")}
          min={1}
          max={100_000}
        />
        <QuietHoursField
          description={
            ofList
              ? "Times of each day in which it makes no submission; they may reach over midnight"
              : "Times of each day in which nothing is submitted; heads are looked for nevertheless"
          }
          value={draft.quietHours}
          onChange={quietHours => change({ quietHours })}
          error={at("quiet_hours")}
        />
        <div className="row">
          <Button type="submit" loading={save.isPending}>
            {view ? "Save" : "Add watch"}
          </Button>
          {view ? (
            <Link to="/watches/$name" params={{ name: view.spec.name }}>
              Discard changes
            </Link>
          ) : (
            <Link to="/watches">Cancel</Link>
          )}
          {!view && (
            <span className="muted">
              {ofList
                ? "It is disabled until you have seen what it would take."
                : "It is disabled at first. The first head of each line is the start: nothing is measured then."}
            </span>
          )}
        </div>
      </form>
      <WatchFile spec={spec} />
    </>
  );
}

/** The watch as a file, for those who keep files. */
export function WatchFile({ spec }: { spec: WatchSpec }) {
  const name = spec.name || "NAME";
  return (
    <Section
      id="file"
      title="As a file"
      lead={
        <>
          The same watch for <code>wqlab watches add {name}.yaml</code>. As{" "}
          <code>intake/watches/{name}.yaml</code> of the data folder it is the operator's, with{" "}
          <code>enabled: true</code> to enable it.
        </>
      }
    >
      <CommandBlock
        label="Watch as a file"
        commands={[{ name: `${name}.yaml`, text: watchYaml({ ...spec, name }) }]}
      />
    </Section>
  );
}

function useSave(view: WatchView | undefined) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (body: WatchSpec) =>
      dataOf(
        view
          ? api.PUT("/api/v1/watches/{name}", { params: { path: { name: view.spec.name } }, body })
          : api.POST("/api/v1/watches", { body }),
      ),
    onSuccess: async made => {
      const { name, kind } = made.spec;
      client.setQueryData(watchQuery(name).queryKey, made);
      void client.invalidateQueries({ queryKey: ["watches"] });
      toast({ text: view ? `Watch ${name} is changed.` : `Watch ${name} is added. It is disabled.` });
      await navigate({
        to: "/watches/$name",
        params: { name },
        search: kind === "list" && made.enabled_at === null ? { days: DAYS } : {},
      });
    },
  });
}

function targetsText({ kind, whatItTouches }: WatchDraft): string {
  if (kind === "tree") return "What is measured of each head, as plan@device-type, one a line";
  if (whatItTouches) return "What may be proposed, as plan@device-type, one a line; empty: everything";
  return "What is measured of each series, as plan@device-type, one a line";
}

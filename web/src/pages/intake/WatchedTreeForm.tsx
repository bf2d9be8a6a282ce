import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { watchedTreeQuery } from "@/api/intakeQueries";
import { treesQuery } from "@/api/queries";
import type { WatchedTree, WatchedTreeView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, NativeSelect, Radio, TextInput } from "@/kit";
import { CommandBlock } from "@/parts/CommandBlock";
import { FormError } from "@/parts/FormError";
import { Section } from "@/parts/Page";
import { IdentityFields, LinesField, NumberField, QuietHoursField, TargetsField } from "./fields";
import classes from "./intake.module.css";
import { BATCH_MEANING, BATCHES } from "./labels";
import { fieldError } from "./ruleDraft";
import {
  NEW_TREE,
  type TreeDraft,
  treeDraftOf,
  treeYaml,
  unreadableParameters,
  watchedTreeOf,
} from "./treeDraft";

/** Form that adds a watched tree, or changes `view`. For maintainers. `owner`: the account that is suggested. */
export function WatchedTreeForm({ view, owner = "" }: { view?: WatchedTreeView; owner?: string }) {
  const { data: trees = [] } = useQuery(treesQuery);
  const [typed, setTyped] = useState(view ? treeDraftOf(view.spec) : { ...NEW_TREE, owner });
  const [tried, setTried] = useState(false);
  const change = (part: Partial<TreeDraft>) => setTyped(before => ({ ...before, ...part }));
  // Source packages have no branches.
  const repositories = trees.filter(each => each.tree.url).map(each => each.tree.name);
  const standard = trees.find(each => each.default && each.tree.url)?.tree.name ?? repositories[0] ?? "";
  const draft = { ...typed, tree: typed.tree || standard };
  const spec = watchedTreeOf(draft, view?.enabled ?? true);
  const unreadable = unreadableParameters(draft.parameters);
  const save = useSave(view);
  const at = (field: keyof WatchedTree) => fieldError(save.error, field);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setTried(true);
    if (unreadable.length === 0) save.mutate(spec);
  };
  const options =
    draft.tree === "" || repositories.includes(draft.tree) ? repositories : [draft.tree, ...repositories];
  return (
    <>
      <form className={classes.form} onSubmit={submit}>
        <FormError error={save.error} />
        <IdentityFields
          draft={draft}
          change={change}
          at={at}
          named={view !== undefined}
          placeholder="workqueue-next"
          kinds="watched trees"
        />
        <div className={classes.pair}>
          <NativeSelect
            label="Tree"
            description="Kernel tree of the lab whose mirror has the commits"
            data={options}
            value={draft.tree}
            onChange={event => change({ tree: event.currentTarget.value })}
            error={at("tree")}
          />
          <TextInput
            label="Repository"
            description="URL to look at, if not that of the tree"
            placeholder="https://git.kernel.org/pub/scm/linux/kernel/git/tj/wq.git"
            value={draft.url}
            onChange={event => change({ url: event.currentTarget.value })}
            error={at("url")}
            autoComplete="off"
            spellCheck={false}
          />
        </div>
        <div className={classes.pair}>
          <LinesField
            label="Branches"
            description="One a line; each is a line of heads"
            placeholder="for-next"
            value={draft.branches}
            onChange={branches => change({ branches })}
            error={at("branches")}
          />
          <LinesField
            label="Tags"
            description="Patterns with * and ?, one a line, in the order of their versions"
            placeholder="v6.12.*"
            value={draft.tags}
            onChange={tags => change({ tags })}
            error={at("tags")}
          />
        </div>
        <TargetsField
          label="Targets"
          description="What is measured of each head, as plan@device-type, one a line"
          value={draft.targets}
          onChange={targets => change({ targets })}
          error={at("targets")}
          required
        />
        <Radio.Group
          label="Heads that wait while an earlier one is measured"
          value={draft.batch}
          onChange={value => change({ batch: value as TreeDraft["batch"] })}
          error={at("batch")}
        >
          <div className={classes.choices}>
            {BATCHES.map(batch => (
              <Radio key={batch} value={batch} label={batch} description={BATCH_MEANING[batch]} />
            ))}
          </div>
        </Radio.Group>
        <div className={classes.pair}>
          <NumberField
            label="Minutes between looks"
            description="A hook, or Look now, asks for one at once"
            value={draft.everyMinutes}
            onChange={everyMinutes => change({ everyMinutes })}
            error={at("every_minutes")}
            min={5}
            max={10_080}
          />
          <NumberField
            label="Minutes a day"
            description="Device time that may be started within 24 hours, by quotes"
            value={draft.minutesADay}
            onChange={minutesADay => change({ minutesADay })}
            error={at("minutes_a_day")}
            min={1}
            max={100_000}
          />
        </div>
        <QuietHoursField
          description="Times of each day in which nothing is submitted; heads are looked for nevertheless"
          value={draft.quietHours}
          onChange={quietHours => change({ quietHours })}
          error={at("quiet_hours")}
        />
        <LinesField
          label="Parameters"
          description="name=value, one a line; they override those of the plans"
          placeholder="jobs=32"
          value={draft.parameters}
          onChange={parameters => change({ parameters })}
          error={
            tried && unreadable.length > 0
              ? `Write name=value instead of ${unreadable.join(", ")}`
              : at("parameters")
          }
        />
        <div className={classes.pair}>
          <NumberField
            label="Blocks"
            description="Empty: as the plans have it"
            value={draft.blocks}
            onChange={blocks => change({ blocks })}
            error={at("blocks")}
            min={1}
            max={100}
            optional
          />
          <NumberField
            label="Priority"
            description="That of people's submissions is 50"
            value={draft.priority}
            onChange={priority => change({ priority })}
            error={at("priority")}
            min={0}
            max={100}
          />
        </div>
        <div className="row">
          <Button type="submit" loading={save.isPending}>
            {view ? "Save" : "Watch tree"}
          </Button>
          {view ? (
            <Link to="/watched-trees/$name" params={{ name: view.spec.name }}>
              Discard changes
            </Link>
          ) : (
            <Link to="/watched-trees">Cancel</Link>
          )}
          {!view && (
            <span className="muted">The first head of each line is the start: nothing is measured then.</span>
          )}
        </div>
      </form>
      <WatchedTreeFile spec={spec} />
    </>
  );
}

/** The watched tree as a file, for those who keep files. */
export function WatchedTreeFile({ spec }: { spec: WatchedTree }) {
  const name = spec.name || "NAME";
  return (
    <Section
      id="file"
      title="As a file"
      lead={
        <>
          The same for <code>wqlab watched-tree add {name}.yaml</code>, or as an entry of{" "}
          <code>intake/watched-trees.yaml</code> in the data folder.
        </>
      }
    >
      <CommandBlock
        label="Watched tree as a file"
        commands={[{ name: `${name}.yaml`, text: treeYaml({ ...spec, name }) }]}
      />
    </Section>
  );
}

function useSave(view: WatchedTreeView | undefined) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (body: WatchedTree) =>
      dataOf(
        view
          ? api.PUT("/api/v1/watched-trees/{name}", { params: { path: { name: view.spec.name } }, body })
          : api.POST("/api/v1/watched-trees", { body }),
      ),
    onSuccess: async made => {
      const { name } = made.spec;
      client.setQueryData(watchedTreeQuery(name).queryKey, made);
      void client.invalidateQueries({ queryKey: ["watched-trees"] });
      toast({ text: view ? `Watched tree ${name} is changed.` : `Tree ${name} is watched.` });
      await navigate({ to: "/watched-trees/$name", params: { name } });
    },
  });
}

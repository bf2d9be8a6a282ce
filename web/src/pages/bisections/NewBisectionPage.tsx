/** The form that begins a bisection. */
import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { fieldError } from "@/api/problem";
import { deviceTypesQuery, plansQuery, recipesQuery, treesQuery } from "@/api/queries";
import { sessionQuery } from "@/api/session";
import type { BisectionRequest } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Checkbox, NativeSelect, TextInput } from "@/kit";
import { CommandBlock } from "@/parts/CommandBlock";
import { EmptyState } from "@/parts/EmptyState";
import { FormError } from "@/parts/FormError";
import { Page, Section } from "@/parts/Page";
import classes from "./bisections.module.css";
import { commandOf, type Draft, draftOf, FAILURE, metricsOf, requestOf } from "./draft";

const route = getRouteApi("/bisections/new");
const CODE = { autoComplete: "off", autoCapitalize: "none", spellCheck: false } as const;

export function NewBisectionPage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  const search = route.useSearch();
  return (
    <Page
      title="Bisect"
      trail={<Link to="/bisections">Bisections</Link>}
      lead={
        <>
          Search for the commit that changed a metric or made the kernel fail.{" "}
          <a href="/docs/bisect/">How a commit is found</a>
        </>
      }
    >
      {user?.scopes.includes("submit") ? (
        <Form key={JSON.stringify(search)} start={draftOf(search)} />
      ) : (
        <EmptyState title="Your account may only read" action={<Link to="/bisections">Bisections</Link>}>
          A bisection makes submissions. An administrator gives accounts the role to submit.
        </EmptyState>
      )}
    </Page>
  );
}

function Form({ start }: { start: Draft }) {
  const { data: plans } = useSuspenseQuery(plansQuery);
  const { data: trees } = useSuspenseQuery(treesQuery);
  const { data: types } = useSuspenseQuery(deviceTypesQuery);
  const { data: recipes } = useSuspenseQuery(recipesQuery);
  const [typed, setTyped] = useState(start);
  const change = (part: Partial<Draft>) => setTyped(before => ({ ...before, ...part }));

  // Source packages have no commits.
  const repositories = trees.filter(each => each.tree.url).map(each => each.tree.name);
  const standard = trees.find(each => each.default && each.tree.url)?.tree.name ?? repositories[0] ?? "";
  const planNames = plans.filter(each => !each.plan.checks_health).map(each => each.plan.name);
  const typeNames = types.filter(each => !each.generated || each.name === typed.type).map(each => each.name);
  // What the menus show is what is sent.
  const planName = typed.plan || (planNames[0] ?? "");
  const typeName = typed.type || (typeNames[0] ?? "");
  const plan = plans.find(each => each.plan.name === planName)?.plan;
  const metrics = metricsOf(
    plan,
    types.find(each => each.name === typeName),
  );
  const scenarios = plan?.scenarios.map(each => each.name) ?? [];
  const draft: Draft = {
    ...typed,
    tree: typed.tree || standard,
    plan: planName,
    type: typeName,
    scenario: typed.scenario || (scenarios[0] ?? ""),
    what: typed.what || (metrics[0] ?? FAILURE),
  };
  const request = requestOf(draft);
  const begin = useBegin();
  const at = (field: keyof BisectionRequest) => fieldError(begin.error, field);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    begin.mutate(request);
  };
  return (
    <>
      <form className="form" onSubmit={submit}>
        <FormError error={begin.error} />
        <NativeSelect
          label="Tree"
          description="Kernel tree whose repository has the commits"
          data={withChosen(repositories, draft.tree)}
          value={draft.tree}
          onChange={event => change({ tree: event.currentTarget.value })}
          error={at("tree")}
        />
        <div className="pair">
          <TextInput
            {...CODE}
            label="Good"
            description="Branch, tag or commit before the change; an ancestor of bad"
            placeholder="v6.16"
            value={typed.good}
            onChange={event => change({ good: event.currentTarget.value })}
            error={at("good")}
            required
            withAsterisk={false}
          />
          <TextInput
            {...CODE}
            label="Bad"
            description="Branch, tag or commit that has the change"
            placeholder="for-next"
            value={typed.bad}
            onChange={event => change({ bad: event.currentTarget.value })}
            error={at("bad")}
            required
            withAsterisk={false}
          />
        </div>
        <div className="pair">
          <NativeSelect
            label="Plan"
            description="What is measured"
            data={withChosen(planNames, planName)}
            value={planName}
            onChange={event =>
              change({
                plan: event.currentTarget.value,
                scenario: "",
                setting: "",
                what: failureOr(typed.what),
              })
            }
            error={at("plan")}
          />
          <NativeSelect
            label="Device type"
            description="Where it is measured"
            data={withChosen(typeNames, typeName)}
            value={typeName}
            onChange={event => change({ type: event.currentTarget.value })}
            error={at("device_type")}
          />
        </div>
        <div className="pair">
          <NativeSelect
            label="What has changed"
            description="A metric of the plan, or that the kernel fails: oops, hang, lockdep report"
            data={[...withChosen(metrics, draft.what === FAILURE ? "" : draft.what), FAILURE]}
            value={draft.what}
            onChange={event => change({ what: event.currentTarget.value })}
            error={at("metric") ?? at("failure")}
          />
          {scenarios.length > 1 && (
            <NativeSelect
              label="Scenario"
              description="The one that shows it"
              data={withChosen(scenarios, draft.scenario)}
              value={draft.scenario}
              onChange={event => change({ scenario: event.currentTarget.value })}
              error={at("scenario")}
            />
          )}
        </div>
        <details className={classes.more} open={hasMore(begin.error) || undefined}>
          <summary>More</summary>
          <div className="form">
            <div className="pair">
              <TextInput
                {...CODE}
                label="Setting"
                description="If empty: the plan's reference setting"
                placeholder={plan?.reference_setting ?? ""}
                value={typed.setting}
                onChange={event => change({ setting: event.currentTarget.value })}
                error={at("setting")}
              />
              <TextInput
                {...CODE}
                label="Branch or tag with both commits"
                description="If empty: the bad one, if it is a branch or tag; otherwise the tree's branch"
                value={typed.ref}
                onChange={event => change({ ref: event.currentTarget.value })}
                error={at("ref")}
              />
            </div>
            <div className="pair">
              <NumberInput
                label="Blocks for the good and the bad commit"
                description="And of the confirmation; empty: as the plan says"
                max={100}
                value={typed.blocks}
                onChange={blocks => change({ blocks })}
                error={at("blocks")}
              />
              <NumberInput
                label="Blocks for each commit between them"
                description="If empty: 2; 1 for exact counts; more for rare failures"
                max={20}
                value={typed.stepBlocks}
                onChange={stepBlocks => change({ stepBlocks })}
                error={at("step_blocks")}
              />
            </div>
            <NativeSelect
              label="Recipe"
              description="Recipe of the kernels; debug checks locking and memory and gives no figures"
              data={[
                { value: "", label: "that of the device type" },
                ...recipes.map(({ name }) => ({ value: name, label: name })),
              ]}
              value={typed.recipe}
              onChange={event => change({ recipe: event.currentTarget.value })}
              error={at("recipe")}
            />
            <Checkbox
              label="Stop at a merge, and do not search its side branch"
              description="Without it, the side branch of a merge is searched too"
              checked={typed.firstParent}
              onChange={event => change({ firstParent: event.currentTarget.checked })}
            />
          </div>
        </details>
        {typed.submission !== null && (
          <p className="muted">
            Seen in{" "}
            <Link to="/submissions/$id" params={{ id: typed.submission }}>
              submission {typed.submission}
            </Link>
            , whose page will link to the bisection.
          </p>
        )}
        <div className="row">
          <Button type="submit" loading={begin.isPending}>
            Begin bisection
          </Button>
          <span className="muted">
            Good and bad are measured first. Its submissions count against your quotas.
          </span>
        </div>
      </form>
      <Section id="command" title="On the command line">
        <CommandBlock commands={[{ name: "wqlab", text: commandOf(request) }]} />
      </Section>
    </>
  );
}

interface NumberInputProps {
  label: string;
  description: string;
  max: number;
  value: string;
  onChange(value: string): void;
  error: string | undefined;
}

function NumberInput({ onChange, ...of }: NumberInputProps) {
  return (
    <TextInput
      {...of}
      type="number"
      min={1}
      step={1}
      onChange={event => onChange(event.currentTarget.value)}
      autoComplete="off"
    />
  );
}

function useBegin() {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (body: BisectionRequest) => dataOf(api.POST("/api/v1/bisections", { body })),
    onSuccess: async ({ id }) => {
      void client.invalidateQueries({ queryKey: ["bisections"] });
      toast({ text: `Bisection ${id} has begun.` });
      await navigate({ to: "/bisections/$id", params: { id } });
    },
  });
}

/** A metric belongs to its plan; a failure does not. */
const failureOr = (what: string) => (what === FAILURE ? FAILURE : "");

const FOLDED = ["setting", "ref", "blocks", "step_blocks", "recipe"];

/** Return true if the server refuses one of the folded fields. */
function hasMore(error: Error | null): boolean {
  return FOLDED.some(name => fieldError(error, name) !== undefined);
}

/** Options of a menu; the chosen name stays one if the lab no longer has it, and the server says so. */
function withChosen(known: readonly string[], chosen: string): string[] {
  return chosen === "" || known.includes(chosen) ? [...known] : [chosen, ...known];
}

import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "@/api/client";
import { ruleQuery, rulesQuery } from "@/api/intakeQueries";
import { useHasScope } from "@/api/session";
import type { RuleView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button } from "@/kit";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { FailureCard } from "@/parts/FailureCard";
import { Page } from "@/parts/Page";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./intake.module.css";
import { Preview } from "./Preview";
import { RuleDecisions } from "./RuleDecisions";
import { RuleFile, RuleForm } from "./RuleForm";
import { RuleSwitch } from "./RuleSwitch";
import { budgetText, obstacle, quietText } from "./rule";
import { FormLink, Names, Obstacle } from "./Watched";

/** Poll: there are no events for watched lists. */
const REFRESH_MS = 15_000;
const route = getRouteApi("/rules/$name");

export function RulePage() {
  const { name } = route.useParams();
  const { form } = route.useSearch();
  const changes = useHasScope()("admin");
  const { data: view } = useSuspenseQuery({ ...ruleQuery(name), refetchInterval: REFRESH_MS });
  if (form && changes && !view.from_file) {
    return (
      <Page
        title={`Change ${view.rule.name}`}
        lead="What it took already does not change, and it stays on or off."
        trail={
          <>
            <Link to="/rules">Watched lists</Link> /{" "}
            <Link to="/rules/$name" params={{ name }}>
              {view.rule.name}
            </Link>
          </>
        }
      >
        <RuleForm key={view.rule.name} view={view} />
      </Page>
    );
  }
  return (
    <Page
      title={view.rule.name}
      lead={view.rule.summary ? oneLine(view.rule.summary) : undefined}
      trail={<Link to="/rules">Watched lists</Link>}
      actions={<RuleActions view={view} />}
    >
      <Facts view={view} />
      {view.watched?.failure && <FailureCard failure={view.watched.failure} what="last read of the list" />}
      <Preview view={view} />
      <RuleDecisions name={view.rule.name} />
      <RuleFile rule={view.rule} />
    </Page>
  );
}

function RuleActions({ view }: { view: RuleView }) {
  const may = useHasScope();
  const [removing, setRemoving] = useState(false);
  if (view.from_file) return null;
  return (
    <>
      <RuleSwitch view={view} />
      {may("admin") && (
        <>
          <FormLink to="/rules/$name" params={{ name: view.rule.name }}>
            Change
          </FormLink>
          <Button size="xs" variant="default" onClick={() => setRemoving(true)}>
            Remove
          </Button>
        </>
      )}
      {removing && <Remove name={view.rule.name} close={() => setRemoving(false)} />}
    </>
  );
}

function Remove({ name, close }: { name: string; close(): void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const act = useMutation({
    mutationFn: () => api.DELETE("/api/v1/rules/{name}", { params: { path: { name } } }),
    onSuccess: async () => {
      toast({ text: `Rule ${name} is removed.` });
      await navigate({ to: "/rules" });
      client.removeQueries({ queryKey: ruleQuery(name).queryKey });
      void client.invalidateQueries({ queryKey: rulesQuery.queryKey });
    },
  });
  return (
    <ConfirmDialog
      open
      title={`Remove rule ${name}?`}
      confirm="Remove the rule"
      dangerous
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        It takes nothing any more, and series that wait are not taken. Submissions that it made go on. What it
        decided is kept: a rule of the same name has these decisions again.
      </p>
    </ConfirmDialog>
  );
}

function Facts({ view }: { view: RuleView }) {
  const { rule, watched } = view;
  const found = obstacle(view, useNow(30_000));
  return (
    <dl className="facts">
      <dt>State</dt>
      <dd>
        <StateBadge state={view.enabled_at === null ? "off" : "on"} />{" "}
        <span className="muted">
          {view.enabled_at === null ? (
            "It takes nothing."
          ) : (
            <>
              It takes series whose last patch arrives after it was switched on,{" "}
              <RelativeTime at={view.enabled_at} />.
            </>
          )}
        </span>
      </dd>
      {found && (
        <>
          <dt>Stands still</dt>
          <dd>
            <Obstacle of={found} />
          </dd>
        </>
      )}
      <dt>List</dt>
      <dd className={classes.long}>
        {rule.archive}
        {watched?.list && <> ({watched.list})</>}
        {watched && (
          <span className="muted">
            , read <RelativeTime at={watched.read_at} absent="not yet" />: {count(watched.mails, "mail")},{" "}
            {watched.undecided} of series that are not complete
          </span>
        )}
      </dd>
      <dt>Files</dt>
      <dd>
        <Names of={rule.paths} none="any" />
      </dd>
      <dt>Subjects</dt>
      <dd>
        <Names of={rule.subjects} none="any" />
      </dd>
      <dt>Authors</dt>
      <dd>
        <Names of={rule.authors} none="any" />
      </dd>
      <dt>Asking</dt>
      <dd>
        {rule.only_if_asked ? (
          <>
            only series whose cover letter has a line <code>wqlab: test</code>
          </>
        ) : (
          "not needed: every complete series that matches is taken"
        )}
      </dd>
      {rule.what_it_touches && (
        <>
          <dt>Proposals</dt>
          <dd>the targets that the lab proposes for the files and functions that a series changes</dd>
        </>
      )}
      <dt>{rule.what_it_touches ? "Of these" : "Measures"}</dt>
      <dd>
        <Names of={rule.targets} none="everything that the lab has" />
      </dd>
      <dt>Tree</dt>
      <dd>
        <Link to="/trees" hash={rule.tree}>
          {rule.tree}
        </Link>
      </dd>
      <dt>Budget</dt>
      <dd>
        {budgetText(view)} <span className="muted">of device time used in 24 hours, by quotes</span>
      </dd>
      <dt>Quiet hours</dt>
      <dd>{quietText(rule.quiet_hours ?? []) || <span className="muted">none</span>}</dd>
      <dt>Owner</dt>
      <dd>{oneLine(rule.owner)}</dd>
      <dt>May command by mail</dt>
      <dd>
        <Names of={rule.commanders} none="the author alone" />
      </dd>
      <dt>Changed</dt>
      <dd className={classes.long}>
        <RelativeTime at={view.changed_at} />{" "}
        {view.from_file ? (
          <>
            by the file <code>intake/rules/{rule.name}.yaml</code> of the data folder, where it is changed and
            switched
          </>
        ) : (
          <>by {oneLine(view.changed_by)}</>
        )}
      </dd>
    </dl>
  );
}

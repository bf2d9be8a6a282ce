import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { watchedTreeQuery, watchedTreesQuery } from "@/api/intakeQueries";
import { useHasScope } from "@/api/session";
import type { WatchedTreeView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button } from "@/kit";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { Page } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { Heads } from "./Heads";
import classes from "./intake.module.css";
import { BATCH_MEANING } from "./labels";
import { quietText } from "./rule";
import { FormLink, Names, Obstacle, treeObstacle } from "./Watched";
import { WatchedTreeFile, WatchedTreeForm } from "./WatchedTreeForm";

/** Poll: there are no events for watched trees. Heads are there some seconds after a look. */
const REFRESH_MS = 5_000;
const route = getRouteApi("/watched-trees/$name");

export function WatchedTreePage() {
  const { name } = route.useParams();
  const { form } = route.useSearch();
  const changes = useHasScope()("maintain");
  const { data: view } = useSuspenseQuery({ ...watchedTreeQuery(name), refetchInterval: REFRESH_MS });
  if (form && changes && !view.from_file) {
    return (
      <Page
        title={`Change ${view.spec.name}`}
        lead="Heads that wait are measured as the changed one says."
        trail={
          <>
            <Link to="/watched-trees">Watched trees</Link> /{" "}
            <Link to="/watched-trees/$name" params={{ name }}>
              {view.spec.name}
            </Link>
          </>
        }
      >
        <WatchedTreeForm key={view.spec.name} view={view} />
      </Page>
    );
  }
  return (
    <Page
      title={view.spec.name}
      lead={view.spec.summary ? oneLine(view.spec.summary) : undefined}
      trail={<Link to="/watched-trees">Watched trees</Link>}
      actions={changes && <Actions view={view} />}
    >
      <Facts view={view} />
      <Heads view={view} refreshMs={REFRESH_MS} />
      <WatchedTreeFile spec={view.spec} />
    </Page>
  );
}

function Facts({ view }: { view: WatchedTreeView }) {
  const { spec } = view;
  const found = treeObstacle(view);
  const parameters = Object.entries(spec.parameters ?? {}).map(([name, value]) => `${name}=${value}`);
  return (
    <dl className="facts">
      <dt>State</dt>
      <dd>
        <StateBadge state={view.enabled ? "on" : "off"} />{" "}
        <span className="muted">
          {view.enabled ? (
            <>
              looked <RelativeTime at={view.looked_at} />, looks again <NextLook at={view.next_look_at} />,
              every {count(spec.every_minutes ?? 60, "minute")}
            </>
          ) : (
            <>
              looked <RelativeTime at={view.looked_at} />; neither looks nor submits now
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
      <dt>Repository</dt>
      <dd className={classes.long}>
        {/^https?:\/\//.test(view.url) ? (
          <a href={view.url} rel="noreferrer">
            {view.url}
          </a>
        ) : view.url ? (
          <code>{oneLine(view.url)}</code>
        ) : (
          <span className="muted">the lab has no such tree any more</span>
        )}{" "}
        <span className="muted">
          (tree{" "}
          <Link to="/trees" hash={spec.tree}>
            {spec.tree}
          </Link>
          )
        </span>
      </dd>
      <dt>Branches</dt>
      <dd>
        <Names of={spec.branches} none="none" />
      </dd>
      <dt>Tags</dt>
      <dd>
        <Names of={spec.tags} none="none" />
      </dd>
      <dt>Measures</dt>
      <dd>
        <Names of={spec.targets} none="nothing" />
      </dd>
      {parameters.length > 0 && (
        <>
          <dt>Parameters</dt>
          <dd>
            <Names of={parameters} none="none" />
          </dd>
        </>
      )}
      <dt>Batch</dt>
      <dd>
        {spec.batch} <span className="muted">{BATCH_MEANING[spec.batch ?? "newest"]}</span>
      </dd>
      <dt>Budget</dt>
      <dd>
        {count(spec.minutes_a_day ?? 0, "minute")}{" "}
        <span className="muted">
          of device time in 24 hours, by quotes; priority {spec.priority}
          {spec.blocks != null && `; ${count(spec.blocks, "block")}`}
        </span>
      </dd>
      <dt>Quiet hours</dt>
      <dd>{quietText(spec.quiet_hours ?? []) || <span className="muted">none</span>}</dd>
      <dt>Owner</dt>
      <dd>{oneLine(spec.owner)}</dd>
      <dt>Added</dt>
      <dd className={classes.long}>
        <RelativeTime at={view.created_at} />{" "}
        {view.from_file ? (
          <>
            by <code>intake/watched-trees.yaml</code> of the data folder, where it is changed and removed
          </>
        ) : (
          <>by {oneLine(view.created_by)}</>
        )}
        , changed <RelativeTime at={view.changed_at} />
      </dd>
    </dl>
  );
}

/** A time that has passed is due: the worker is asked in a moment. */
function NextLook({ at }: { at: string | null }) {
  return at !== null && Date.parse(at) <= Date.now() ? "in a moment" : <RelativeTime at={at} />;
}

type Act = "check" | "enable" | "disable";
const DONE: Record<Act, string> = {
  check: "The lab looks for new heads; they are here some seconds later.",
  enable: "The tree is watched again. The lab looks for new heads.",
  disable: "The tree is no longer watched. What is being measured ends.",
};

function Actions({ view }: { view: WatchedTreeView }) {
  const client = useQueryClient();
  const { name } = view.spec;
  const [removing, setRemoving] = useState(false);
  const path = { params: { path: { name } } };
  const act = useMutation({
    mutationFn: (what: Act) =>
      dataOf(
        what === "check"
          ? api.POST("/api/v1/watched-trees/{name}/check", path)
          : what === "enable"
            ? api.POST("/api/v1/watched-trees/{name}/enable", path)
            : api.POST("/api/v1/watched-trees/{name}/disable", path),
      ),
    onSuccess: (changed, what) => {
      client.setQueryData(watchedTreeQuery(name).queryKey, changed);
      toast({ text: DONE[what] });
    },
    onError: error => toast({ tone: "bad", text: error.message }),
    onSettled: () => client.invalidateQueries({ queryKey: ["watched-trees"] }),
  });
  return (
    <>
      {view.enabled ? (
        <>
          <Button size="xs" loading={act.isPending} onClick={() => act.mutate("check")}>
            Look now
          </Button>
          <Button size="xs" variant="default" disabled={act.isPending} onClick={() => act.mutate("disable")}>
            Disable
          </Button>
        </>
      ) : (
        <Button size="xs" loading={act.isPending} onClick={() => act.mutate("enable")}>
          Enable
        </Button>
      )}
      {!view.from_file && (
        <>
          <FormLink to="/watched-trees/$name" params={{ name }}>
            Change
          </FormLink>
          <Button size="xs" variant="default" onClick={() => setRemoving(true)}>
            Remove
          </Button>
        </>
      )}
      {removing && <Remove name={name} close={() => setRemoving(false)} />}
    </>
  );
}

function Remove({ name, close }: { name: string; close(): void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const act = useMutation({
    mutationFn: () => dataOf(api.DELETE("/api/v1/watched-trees/{name}", { params: { path: { name } } })),
    onSuccess: async () => {
      toast({ text: `Tree ${name} is no longer watched.` });
      await navigate({ to: "/watched-trees" });
      client.removeQueries({ queryKey: watchedTreeQuery(name).queryKey });
      void client.invalidateQueries({ queryKey: watchedTreesQuery.queryKey });
    },
  });
  return (
    <ConfirmDialog
      open
      title={`Stop watching ${name}?`}
      confirm="Remove the watched tree"
      dangerous
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>What is being measured ends. Its heads are kept: if it is added again, none is measured twice.</p>
    </ConfirmDialog>
  );
}

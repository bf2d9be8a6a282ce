/** A bisection: the culprit, the commits with their probabilities, and every measurement. */
import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { bisectionQuery } from "@/api/bisectionQueries";
import { api, dataOf } from "@/api/client";
import { useHasScope, useSession } from "@/api/session";
import type { BisectionData } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button } from "@/kit";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { CopyButton } from "@/parts/CopyButton";
import { DataTable } from "@/parts/DataTable";
import { Facts } from "@/parts/Facts";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./bisections.module.css";
import { commitColumns, stepColumns } from "./columns";
import {
  cellText,
  chanceText,
  culpritText,
  effectText,
  goesOn,
  revisionText,
  STATE_MEANING,
  shortCommit,
  subjectOf,
} from "./labels";
import { rowsOf } from "./rows";

/** Poll while it goes on: there are no events for bisections. */
const REFRESH_MS = 10_000;
const route = getRouteApi("/bisections/$id");

export function BisectionPage() {
  const { id } = route.useParams();
  const { data: of } = useSuspenseQuery({
    ...bisectionQuery(id),
    refetchInterval: query => (query.state.data && goesOn(query.state.data) ? REFRESH_MS : false),
  });
  return (
    <Page
      title={`Bisection of ${subjectOf(of)} on ${of.request.device_type}`}
      trail={
        <>
          <Link to="/bisections">Bisections</Link> / {of.id}
        </>
      }
      lead={`${cellText(of)}: ${revisionText(of.request.good)}..${revisionText(of.request.bad)} of ${of.request.tree}.`}
      actions={<Cancel of={of} />}
    >
      <Result of={of} />
      <BisectionFacts of={of} />
      {of.levels.map(level => (
        <Section
          key={level.merge ?? ""}
          id={level.merge ? `side-${shortCommit(level.merge)}` : "commits"}
          title={
            level.merge
              ? `Side branch of merge ${shortCommit(level.merge)}`
              : `Commits (${count(level.commits.length, "commit")} along first parents)`
          }
          lead={
            level.measured
              ? `Oldest first. Those with figures were measured against ${shortCommit(level.good)}, side by side.`
              : "Oldest first. All are equally probable until the ends have been measured."
          }
        >
          <DataTable
            caption={level.merge ? `Commits of the side branch of ${shortCommit(level.merge)}` : "Commits"}
            captionHidden
            columns={commitColumns(of)}
            rows={rowsOf(level.commits)}
            rowKey={row => row.position}
            fixedOrder
            narrow="stack"
          />
        </Section>
      ))}
      {of.steps.length > 0 && (
        <Section id="steps" title="Measurements" lead="Each is a submission of two commits; oldest first.">
          <DataTable
            caption="Measurements"
            captionHidden
            columns={stepColumns(of)}
            rows={of.steps}
            rowKey={step => step.id}
            fixedOrder
            narrow="stack"
          />
        </Section>
      )}
    </Page>
  );
}

/** The culprit in one sentence, or what is known so far. */
function Result({ of }: { of: BisectionData }) {
  const { culprit } = of;
  return (
    <div className={classes.result} data-state={of.state}>
      <p className={classes.state}>
        <StateBadge state={of.state} /> <span>{STATE_MEANING[of.state]}</span>
      </p>
      {of.reason && <p className={classes.long}>{oneLine(of.reason)}</p>}
      {culprit && (
        <p>
          <span className="muted">{goesOn(of) || of.state === "not_confirmed" ? "Suspected: " : ""}</span>
          <code>{culpritText(of)}</code>{" "}
          <CopyButton text={culprit.commit} name={`Copy the commit ${shortCommit(culprit.commit)}`} />{" "}
          <strong className={classes.long}>{oneLine(culprit.subject)}</strong>{" "}
          <span className="muted">
            by {oneLine(culprit.author)}
            {culprit.is_merge && "; a merge"}
          </span>
        </p>
      )}
    </div>
  );
}

function BisectionFacts({ of }: { of: BisectionData }) {
  const parent = effectText(of, of.culprit_effect, of.culprit_ci95);
  const ends = effectText(of, of.effect, of.ci95);
  return (
    <Facts
      of={{
        Probability: of.probability !== null && chanceText(of.probability),
        "Against its parent": parent && parent,
        "From good to bad": ends && ends,
        "Bad commit": of.failure_rate !== null && (
          <>
            {Math.round(100 * of.failure_rate)} % of its boots fail: {oneLine(of.failure_title)}
          </>
        ),
        "Boots of the search": (
          <>
            {of.boots}
            {of.plain_boots > 0 && (
              <span className="muted">
                {" "}
                (a plain bisection with all blocks at each step: {of.plain_boots})
              </span>
            )}
          </>
        ),
        Device: of.device && (
          <Link to="/lab/$name" params={{ name: of.device }}>
            {of.device}
          </Link>
        ),
        "Began with": of.shift_id !== null && (
          <>
            <Link to="/history/shifts/$id" params={{ id: of.shift_id }}>
              shift {of.shift_id}
            </Link>{" "}
            of {of.watch}
          </>
        ),
        Owner: of.owner,
        Begun: (
          <>
            <RelativeTime at={of.created_at} />
            {of.ended_at && (
              <>
                , ended <RelativeTime at={of.ended_at} />
              </>
            )}
          </>
        ),
      }}
    />
  );
}

function Cancel({ of }: { of: BisectionData }) {
  const session = useSession();
  const may = useHasScope();
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const cancel = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/bisections/{bisection_id}/cancel", { params: { path: { bisection_id: of.id } } }),
      ),
    onSuccess: () => {
      setOpen(false);
      void client.invalidateQueries({ queryKey: ["bisection", of.id] });
      toast({ text: `Bisection ${of.id} is being canceled.` });
    },
  });
  const own = may("submit") && (session?.user?.name === of.owner || may("maintain"));
  if (!own || !goesOn(of)) return null;
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={() => setOpen(true)}>
        Cancel
      </Button>
      <ConfirmDialog
        open={open}
        title={`Cancel bisection ${of.id}?`}
        confirm="Cancel bisection"
        dangerous
        busy={cancel.isPending}
        error={cancel.error?.message ?? null}
        onConfirm={() => cancel.mutate()}
        onClose={() => {
          setOpen(false);
          cancel.reset();
        }}
      >
        <p>The submission that it waits for is canceled too. What was measured so far is kept.</p>
      </ConfirmDialog>
    </>
  );
}

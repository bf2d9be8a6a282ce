/** Figures of two submissions side by side, usually two versions of a series; they are not tested against each other. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { comparisonQuery } from "@/api/queries";
import type { SubmissionVersion, TargetPair } from "@/api/types";
import { oneLine, VERDICTS } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { VerdictBadge } from "@/parts/VerdictBadge";
import classes from "./ComparePage.module.css";
import { Pairs } from "./Pairs";

const route = getRouteApi("/compare");

export function SubmissionsResult({ first, second }: { first: number; second: number }) {
  const search = route.useSearch();
  const { data } = useSuspenseQuery(comparisonQuery(first, second));
  return (
    <>
      <div className={classes.sides}>
        <Side name="First" of={data.first} />
        <Side name="Second" of={data.second} />
      </div>
      {data.notes.length > 0 && (
        <ul className={classes.notes}>
          {data.notes.map(note => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      <Section id="topologies" title="Verdicts by topology">
        <DataTable
          caption="Verdicts by topology"
          captionHidden
          columns={TARGETS}
          rows={data.targets}
          rowKey={({ plan, device_type }) => `${plan} ${device_type}`}
          empty="Neither submission has runs."
        />
      </Section>
      <Pairs figures={data.figures} names={[nameOf(data.first), nameOf(data.second)]} search={search} />
    </>
  );
}

/** Format a submission's name: `v2 (12)`, or `12` if the version is unknown. */
function nameOf({ id, version }: Pick<SubmissionVersion, "id" | "version">): string {
  return version === null ? `${id}` : `v${version} (${id})`;
}

function Side({ name, of }: { name: string; of: SubmissionVersion }) {
  return (
    <section className={classes.side} aria-label={name}>
      <p className="muted">
        {name}: {nameOf(of)}, <RelativeTime at={of.finished_at ?? of.created_at} />
      </p>
      <p className={classes.title}>
        <Link to="/r/$id" params={{ id: of.id }}>
          {oneLine(of.title)}
        </Link>
      </p>
      <p className={classes.source}>
        {of.tree}
        {of.base_commit && (
          <>
            {" "}
            at <code title={of.base_commit}>{of.base_commit.slice(0, 12)}</code>
          </>
        )}
        {of.tree_oid && (
          <>
            , source tree <code title={of.tree_oid}>{of.tree_oid.slice(0, 12)}</code>
          </>
        )}
      </p>
    </section>
  );
}

const TARGETS: Column<TargetPair>[] = [
  {
    id: "target",
    header: "Plan and topology",
    rowHeader: true,
    value: of => `${of.plan} on ${of.device_type}`,
  },
  sideOf("first"),
  sideOf("second"),
];

function sideOf(side: "first" | "second"): Column<TargetPair> {
  return {
    id: side,
    header: side === "first" ? "First" : "Second",
    value: of => of[side]?.verdict,
    text: of => {
      const verdict = of[side]?.verdict;
      return verdict == null ? "" : VERDICTS[verdict].word;
    },
    cell: of =>
      of[side] ? (
        <div className={classes.verdict}>
          <VerdictBadge verdict={of[side].verdict} />
          <span>{oneLine(of[side].headline)}</span>
        </div>
      ) : (
        <span className="muted">not run</span>
      ),
  };
}

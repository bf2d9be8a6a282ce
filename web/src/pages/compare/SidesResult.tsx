/** Any two measured sides beside each other, and what their pairing allows to be said. */
import { useMutation, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { anyComparisonQuery } from "@/api/queries";
import type { AnyComparison, ComparedFigure, ComparedSide, EnvironmentDifference } from "@/api/types";
import { randomKey } from "@/lib/keys";
import { metricName, number, places } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { TargetVerdicts } from "@/parts/TargetVerdicts";
import classes from "./ComparePage.module.css";

const PAIRINGS = {
  paired: "Paired",
  unpaired: "Not paired",
  environments: "Different environments",
} as const;

export function SidesResult({ left, right }: { left: string; right: string }) {
  const { data } = useSuspenseQuery(anyComparisonQuery(left, right));
  return (
    <>
      <div className={classes.sides}>
        <Side name="Left" of={data.left} />
        <Side name="Right" of={data.right} />
      </div>
      <p className={classes.notes}>
        <b>{PAIRINGS[data.pairing]}.</b> {oneLine(data.says)}
      </p>
      {data.differences.length > 0 && (
        <DataTable
          caption="What differs in the environments"
          columns={DIFFERENCES}
          rows={data.differences}
          rowKey={row => row.name}
        />
      )}
      <PairedRun key={`${left} ${right}`} of={data} />
      <Section id="figures" title="Figures">
        <DataTable
          caption="Figures of both sides"
          captionHidden
          columns={FIGURES}
          rows={data.figures}
          rowKey={of => [of.plan, ...of.device_types, of.scenario, ...of.settings, of.metric].join(" ")}
          fixedOrder
        />
      </Section>
    </>
  );
}

/** The submission that would measure both sides in pairs, or why there is none. */
function PairedRun({ of }: { of: AnyComparison }) {
  const offer = of.paired_run;
  // One key for all clicks, so that a second one makes no second submission.
  const [key] = useState(randomKey);
  const submit = useMutation({
    mutationFn: async () => {
      const request = offer?.request;
      if (!request) throw new Error("There is nothing to submit.");
      return await dataOf(
        api.POST("/api/v1/submissions", {
          body: request,
          params: { header: { "idempotency-key": key } },
        }),
      );
    },
  });
  if (!offer) return null;
  if (!offer.request) return <p className={classes.notes}>No paired run: {oneLine(offer.why)}.</p>;
  return (
    <div className={classes.notes}>
      <p>The paired run {oneLine(offer.why)}.</p>
      {submit.data ? (
        <p>
          <Link to="/submissions/$id" params={{ id: submit.data.id }}>
            Submission {submit.data.id}
          </Link>{" "}
          measures both.
        </p>
      ) : (
        <button
          type="button"
          className="button no-print"
          disabled={submit.isPending}
          onClick={() => submit.mutate()}
        >
          Submit the paired run
        </button>
      )}
      {submit.error && <p className={classes.wrong}>{oneLine(submit.error.message)}</p>}
    </div>
  );
}

function Side({ name, of }: { name: string; of: ComparedSide }) {
  return (
    <section className={classes.side} aria-label={name}>
      <p className="muted">
        {name}: {of.arm}
        {of.finished_at && (
          <>
            , <RelativeTime at={of.finished_at} />
          </>
        )}
      </p>
      <p className={classes.title}>
        <Link to="/r/$id" params={{ id: of.submission_id }}>
          {oneLine(of.title)}
        </Link>
      </p>
      <p className="fine">
        {of.tree}
        {of.commit && (
          <>
            {" "}
            at <code title={of.commit}>{of.commit.slice(0, 12)}</code>
          </>
        )}
        , {of.devices.length > 0 ? of.devices.join(", ") : "no device"}
      </p>
      <TargetVerdicts targets={of.targets} />
    </section>
  );
}

const DIFFERENCES: Column<EnvironmentDifference>[] = [
  { id: "fact", header: "Fact", value: row => oneLine(row.name), rowHeader: true },
  { id: "left", header: "Left", value: row => oneLine(row.baseline), wrap: true },
  { id: "right", header: "Right", value: row => oneLine(row.candidate), wrap: true },
];

/** Both sides' texts, once if they are the same. */
function both([one = "", other = ""]: readonly string[]): string {
  return one === other ? one : `${one || "default"} | ${other || "default"}`;
}

function mean(of: ComparedFigure, side: "left" | "right"): string {
  return number(of[side].mean, places([of.left.mean, of.right.mean]));
}

const FIGURES: Column<ComparedFigure>[] = [
  {
    id: "figure",
    header: "Figure",
    rowHeader: true,
    value: of =>
      [of.plan, both(of.device_types), of.scenario, both(of.settings), metricName(of.metric)]
        .filter(Boolean)
        .join(" "),
  },
  { id: "left", header: "Left", value: of => mean(of, "left"), numeric: true },
  { id: "right", header: "Right", value: of => mean(of, "right"), numeric: true },
  { id: "unit", header: "Unit", value: of => of.unit },
  { id: "boots", header: "Boots", value: of => `${of.left.n}, ${of.right.n}` },
  {
    id: "says",
    header: "Right against left",
    value: of => oneLine(of.text).replaceAll(" -> ", " → "),
    wrap: true,
  },
];

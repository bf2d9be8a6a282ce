import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { inspectionQuery, threadQuery, touchesQuery } from "@/api/queries";
import type { DeviceTypeView, SubmissionRequest, TargetProposal, TouchedFile, Touches } from "@/api/types";
import { Button, Checkbox } from "@/kit";
import { countsText } from "@/lib/devices";
import { count, metricName, withUnit } from "@/lib/numbers";
import { roughDuration } from "@/lib/time";
import { oneLine } from "@/lib/words";
import { Skeleton } from "@/parts/Skeleton";
import { describe } from "@/parts/topology/layout";
import { type Draft, nameOf, type Pair, selectedTargets, withChosen, withTarget } from "../draft/draft";
import type { ChangeDraft } from "../draft/useDraft";
import { useIsSignedOut } from "../quote/useQuote";
import { type BranchReading, useBranchReading } from "../series/useBranchReading";
import classes from "./ProposedTargets.module.css";

/** Device time up to which a proposal is selected without being asked for. */
const CHEAP_S = 15 * 60;

interface ProposedTargetsProps {
  request: SubmissionRequest;
  /** Identifies the text of the mbox. */
  mboxKey: string;
  types: readonly DeviceTypeView[];
  draft: Draft;
  change: ChangeDraft;
}

/** Questions that the lab proposes for the series, each with device, smallest effect that is found, and cost. */
export function ProposedTargets({ request, mboxKey, types, draft, change }: ProposedTargetsProps) {
  const signedOut = useIsSignedOut();
  const { ready, key, reading } = useSeries(request, mboxKey);
  const touches = useQuery({
    ...touchesQuery(request.series, request.tree, key),
    enabled: ready && !signedOut,
    retry: false,
  });
  if (reading?.asked && !signedOut && !ready) return <Reading of={reading} />;
  if (!ready || signedOut)
    return (
      <p className="muted">
        {signedOut
          ? "Sign in to see the plans and device types that the lab proposes."
          : "Give a series to see the plans and device types that the lab proposes for the files and functions that it changes."}
      </p>
    );
  if (touches.data) return <Proposals of={touches.data} types={types} draft={draft} change={change} />;
  if (touches.error)
    return (
      <p className={classes.error}>The lab could not propose targets: {oneLine(touches.error.message)}</p>
    );
  return <Skeleton lines={4} />;
}

/** Why there are no proposals for a branch yet. */
function Reading({ of }: { of: BranchReading }) {
  if (of.found?.failure || of.error)
    return (
      <p className={classes.error}>
        The lab could not read the branch, so it proposes no targets. The branch's fields show the reason. You
        can still select targets below and submit.
      </p>
    );
  if (of.found?.inspection)
    return (
      <p className={classes.error}>
        The lab proposes no targets, because the branch has errors. Its fields show them.
      </p>
    );
  return (
    <div className="stack">
      <p className="muted">Reading the branch… You need not wait for the proposals to submit.</p>
      <Skeleton lines={4} />
    </div>
  );
}

interface KnownSeries {
  ready: boolean;
  key: string;
  /** Of a branch. */
  reading?: BranchReading;
}

/** Whether the series is known to the lab and usable, and what identifies it. The fields of the series read it. */
function useSeries(request: SubmissionRequest, mboxKey: string): KnownSeries {
  const text = request.series?.mbox?.text ?? "";
  const thread = request.series?.thread;
  const revision = thread?.revision == null ? "" : String(thread.revision);
  const inspection = useQuery({ ...inspectionQuery(text, mboxKey), enabled: false });
  const preview = useQuery({ ...threadQuery(thread?.message_id ?? "", revision), enabled: false });
  const reading = useBranchReading(request);
  if (request.series?.git)
    return {
      ready: reading.found?.inspection?.usable ?? false,
      key: `branch ${JSON.stringify(request.series.git)} ${reading.found?.looked_at ?? ""}`,
      reading,
    };
  if (thread)
    return {
      ready: preview.data?.inspection?.usable ?? false,
      key: `thread ${thread.message_id} ${revision} ${preview.data?.looked_at ?? ""}`,
    };
  return { ready: text !== "" && (inspection.data?.usable ?? false), key: `mbox ${mboxKey}` };
}

interface ProposalsProps {
  of: Touches;
  types: readonly DeviceTypeView[];
  draft: Draft;
  change: ChangeDraft;
}

export function Proposals({ of, types, draft, change }: ProposalsProps) {
  const chosen = new Set(selectedTargets(draft).map(nameOf));
  const all = of.proposals.map(pairOf);
  const set = (on: boolean, proposals: readonly TargetProposal[]) =>
    change(before => proposals.reduce((next, each) => withProposal(next, each, on), before));
  useCheapProposals(of, draft, change);
  const allChosen = all.every(pair => chosen.has(nameOf(pair)));
  return (
    <div className="stack">
      {of.proposals.length === 0 ? (
        <p>The lab has no plan for what this series changes. Select plans and device types below.</p>
      ) : (
        <Controls>
          {tabIndex => (
            <>
              <ul className={classes.proposals} aria-label="Proposed targets">
                {of.proposals.map((proposal, at) => {
                  const pair = pairOf(proposal);
                  const type = types.find(each => each.name === pair.type);
                  const settings = proposal.target.settings?.length ?? 0;
                  return (
                    <li key={nameOf(pair)} className={classes.proposal}>
                      <Checkbox
                        label={proposal.asks.map(oneLine).join(" ")}
                        description={`${pair.plan} on ${pair.type}${type ? ` · ${deviceText(type)}` : ""}${settings > 0 ? ` · ${count(settings, "setting")}` : ""}`}
                        checked={chosen.has(nameOf(pair))}
                        onChange={event => set(event.currentTarget.checked, [proposal])}
                        tabIndex={tabIndex(at)}
                      />
                      <p className={classes.finds}>{findsText(proposal)}</p>
                      <p className={classes.cost}>{cost(proposal)}</p>
                      <p className={classes.because}>
                        <Because files={proposal.because} />
                      </p>
                    </li>
                  );
                })}
              </ul>
              <div className={classes.head}>
                <p className="muted">
                  {count(of.proposals.length, "question")} for what the series changes
                  {of.device_s != null && `: ${roughDuration(of.device_s)} of device time in all`}. The arrow
                  keys ↑ and ↓ move between them.
                </p>
                <Button
                  variant="default"
                  size="xs"
                  onClick={() => set(!allChosen, of.proposals)}
                  tabIndex={tabIndex(of.proposals.length)}
                >
                  {allChosen ? "Clear these" : "Select all"}
                </Button>
              </div>
            </>
          )}
        </Controls>
      )}
      <LeftOut of={of} />
    </div>
  );
}

/** Toolbar with one tab stop: arrow keys move between its controls (ARIA Authoring Practices). */
function Controls({ children }: { children(tabIndex: (at: number) => number): ReactNode }) {
  const [current, setCurrent] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const all = () => [...(box.current?.querySelectorAll<HTMLElement>("input, button") ?? [])];
  return (
    <div
      role="toolbar"
      aria-label="What to measure"
      aria-orientation="vertical"
      className="stack"
      ref={box}
      onFocus={event => setCurrent(all().indexOf(event.target))}
      onKeyDown={event => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        all()[current + step]?.focus();
      }}
    >
      {children(at => (at === current ? 0 : -1))}
    </div>
  );
}

/** Select the proposals that take minutes, once for a series, unless something is selected already. */
function useCheapProposals(of: Touches, draft: Draft, change: ChangeDraft) {
  const done = useRef<Touches>(null);
  const untouched = draft.plan.length === 0;
  useEffect(() => {
    if (done.current === of) return;
    done.current = of;
    const cheap = of.proposals.filter(each => each.quote?.device_s != null && each.quote.device_s <= CHEAP_S);
    if (untouched && cheap.length > 0)
      change(before => cheap.reduce((next, each) => withProposal(next, each, true), before));
  }, [of, untouched, change]);
}

function LeftOut({ of }: { of: Touches }) {
  const notes = [
    ...of.left_out.map(each => `${each.plan} is not proposed: ${each.why}.`),
    ...(of.uncovered.length > 0 ? [`No plan is known for ${listed(of.uncovered, 5)}.`] : []),
    ...(of.looked_at < of.files
      ? [`Only the first ${of.looked_at} of ${of.files} files were looked at.`]
      : []),
  ];
  if (notes.length === 0) return null;
  return (
    <ul className={classes.notes}>
      {notes.map(note => (
        <li key={note}>{oneLine(note)}</li>
      ))}
    </ul>
  );
}

function Because({ files }: { files: readonly TouchedFile[] }) {
  const shown = files.slice(0, 3);
  return (
    <>
      because of{" "}
      {shown.map((file, index) => (
        <span key={file.path}>
          {index > 0 && "; "}
          {(file.symbols ?? []).length > 0 && `${listed(file.symbols ?? [], 3)} in `}
          <code className={classes.path}>{oneLine(file.path)}</code>
        </span>
      ))}
      {files.length > shown.length && ` and ${count(files.length - shown.length, "more file")}`}
    </>
  );
}

function listed(names: readonly string[], most: number): string {
  const shown = names.slice(0, most).map(oneLine).join(", ");
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** Return `emulated, 2 packages with 16 CPUs each, 1 free`. */
function deviceText({ emulated, modelled, layout, device_counts: counts }: DeviceTypeView): string {
  const kind = modelled ? ["modelled"] : emulated ? ["emulated"] : [];
  return [...kind, describe(layout), countsText(counts)].join(", ");
}

/** What a measurement would find: `finds 0.86 % of kernel instructions`. */
function findsText({ quote }: TargetProposal): string {
  const found = quote?.detectable;
  if (!found) return "";
  const metric = metricName(found.metric).replaceAll("_", " ");
  if (found.effect != null)
    return `finds ${withUnit(Number(found.effect.toPrecision(2)), found.effect_unit)} of ${metric}`;
  return found.exact ? `finds any change of ${metric}` : `measures ${metric}`;
}

/** Device time; "about" marks a guess, if the plan was not measured on the device type. */
function cost({ quote }: TargetProposal): string {
  if (quote?.device_s == null) return "time unknown";
  return `${quote.basis === "planned" ? "about " : ""}${roughDuration(quote.device_s)}`;
}

function pairOf({ target }: TargetProposal): Pair {
  return { plan: target.plan, type: target.device_type ?? "" };
}

/** Return the draft with a proposal selected, with its settings, or not. */
export function withProposal(draft: Draft, proposal: TargetProposal, on: boolean): Draft {
  const pair = pairOf(proposal);
  const next = withTarget(draft, pair, on);
  const settings = proposal.target.settings ?? [];
  return settings.length === 0 ? next : withChosen(next, "setting", nameOf(pair), on ? [...settings] : null);
}

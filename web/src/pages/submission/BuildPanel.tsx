import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { buildQuery } from "@/api/queries";
import type { BuildStep, BuildView, Failure } from "@/api/types";
import { buildLogUrl, fileQuery } from "@/console/files";
import { LogView } from "@/console/LogView";
import type { Log } from "@/console/log";
import { count } from "@/lib/numbers";
import { duration } from "@/lib/time";
import { clean, oneLine } from "@/lib/words";
import { CommandBlock } from "@/parts/CommandBlock";
import { EmptyState } from "@/parts/EmptyState";
import { FailureCard } from "@/parts/FailureCard";
import { Progress } from "@/parts/Progress";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { errorLines, linesWith, warningText } from "./buildlog";
import classes from "./panels.module.css";
import { Listed } from "./RunPanel";
import type { Selection } from "./selection";
import { useLogAddress } from "./useAddress";

type BuildSelection = Extract<Selection, { kind: "build" }>;

/** A kernel: what went wrong first, then its log, then how to build it again. */
export function BuildPanel({ selection, told }: { selection: BuildSelection; told: Failure | null }) {
  const { build } = selection;
  const { data: view, error } = useQuery(buildQuery(build.id, build.finished_at));
  return (
    <div className={classes.panel}>
      <div className={classes.head}>
        <div className={classes.title}>
          <h2>
            Build of the {build.arm} <span className="muted">no. {build.id}</span>
          </h2>
          <StateBadge state={build.state} outcome={build.outcome} />
        </div>
        <span className="muted">
          {build.recipe}, {build.arch}
          {build.reused && ", made earlier for the same content"}
        </span>
      </div>
      {build.failure && (
        <FailureCard failure={build.failure} what={`build of the ${build.arm}`} told={told} />
      )}
      {build.has_log ? <LogOf selection={selection} view={view} /> : <NoLog build={build} />}
      {view ? <Facts view={view} /> : error ? <p>{error.message}</p> : <Skeleton lines={6} />}
    </div>
  );
}

function NoLog({ build }: { build: BuildStep }) {
  if (build.state === "finished")
    return (
      <EmptyState title="This build has no log">
        {build.outcome === "canceled"
          ? "It was canceled before it ended."
          : "It ended before the compiler ran, or the log could not be kept."}
      </EmptyState>
    );
  return (
    <div className={classes.nothing}>
      <Progress done={build.progress_done} total={build.progress_total} noun="steps">
        {oneLine(build.progress) || (build.state === "running" ? "begins" : "waits for a builder")}
      </Progress>
      <p className="muted">The log comes when the build ends.</p>
    </div>
  );
}

function LogOf({ selection, view }: { selection: BuildSelection; view: BuildView | undefined }) {
  const { build } = selection;
  const file = useQuery(fileQuery(buildLogUrl(build.id)));
  if (file.error)
    return (
      <EmptyState title="The log could not be read">
        {file.error.message}{" "}
        <button type="button" className={classes.button} onClick={() => void file.refetch()}>
          Try again
        </button>
      </EmptyState>
    );
  if (!file.data) return <div className={classes.log} aria-busy="true" />;
  return <ReadLog selection={selection} view={view} log={file.data} />;
}

function ReadLog({
  selection,
  view,
  log,
}: {
  selection: BuildSelection;
  view: BuildView | undefined;
  log: Log;
}) {
  const { build } = selection;
  const { address: chosen, onAddress, lineHref } = useLogAddress(selection);
  const excerpt = build.failure?.excerpt ?? "";
  const errors = useMemo(() => linesWith(log, errorLines(clean(excerpt))), [log, excerpt]);
  // A log that tells why the build failed opens there, unless the address says where.
  const address = { ...chosen, line: chosen.line ?? errors[0] ?? null };
  const warnings = useMemo(() => view?.new_warnings ?? [], [view]);
  const placed = useMemo(
    () => warnings.map(each => ({ warning: each, line: linesWith(log, [warningText(each)])[0] ?? null })),
    [log, warnings],
  );
  const marked = useMemo(
    () => new Set([...errors, ...placed.flatMap(each => each.line ?? [])]),
    [errors, placed],
  );
  const toLine = (line: number) => (
    <a
      href={lineHref(line)}
      onClick={event => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        onAddress({ line }, false);
      }}
    >
      line {line}
    </a>
  );
  return (
    <>
      {errors.length > 0 && (
        <Listed title={count(errors.length, "error")}>
          {errors.map(line => (
            <li key={line}>
              {toLine(line)} <code>{clean(log.line(line) ?? "")}</code>
            </li>
          ))}
        </Listed>
      )}
      {placed.length > 0 && (
        <Listed title={`${count(placed.length, "warning")} that the baseline does not have`}>
          {placed.map(({ warning, line }) => (
            <li key={`${warning.where} ${warning.text}`}>
              {line !== null && toLine(line)} <code>{clean(warning.where)}</code> {oneLine(warning.text)}{" "}
              {warning.option && <code className="muted">{clean(warning.option)}</code>}
            </li>
          ))}
        </Listed>
      )}
      <div className={classes.log}>
        <LogView
          log={log}
          name={`Log of build ${build.id}`}
          address={address}
          onAddress={onAddress}
          lineHref={lineHref}
          download={{ href: buildLogUrl(build.id), file: `build-${build.id}.log` }}
          marked={marked}
          empty="The log is empty."
        />
      </div>
    </>
  );
}

function Facts({ view }: { view: BuildView }) {
  return (
    <section className={classes.listed}>
      <h3>This kernel</h3>
      <dl className="facts">
        <dt>release</dt>
        <dd>{view.release ? <code>{clean(view.release)}</code> : "\u2013"}</dd>
        <dt>build-id</dt>
        <dd>{view.build_id_gnu ? <code>{view.build_id_gnu}</code> : "\u2013"}</dd>
        <dt>base</dt>
        <dd>
          <code>{view.base_commit.slice(0, 12)}</code> of {view.tree}
        </dd>
        <dt>source</dt>
        <dd>
          <code>{view.tree_oid.slice(0, 12)}</code> (git tree)
        </dd>
        <dt>compiler</dt>
        <dd>{oneLine(view.compiler) || "\u2013"}</dd>
        <dt>took</dt>
        <dd>{!view.duration_s ? "\u2013" : duration(view.duration_s)}</dd>
        {view.artifacts.length > 0 && (
          <>
            <dt>files</dt>
            <dd className={classes.files}>
              {view.artifacts.map(file => (
                <a key={file.sha256} href={`/api/v1/builds/${view.id}/artifacts/${file.sha256}`}>
                  {oneLine(file.name)}
                </a>
              ))}
            </dd>
          </>
        )}
      </dl>
      {view.reproducer && (
        <CommandBlock
          label="Build it again"
          commands={[{ name: "build it again", text: clean(view.reproducer) }]}
        />
      )}
    </section>
  );
}

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
import { Facts } from "@/parts/Facts";
import { FailureCard } from "@/parts/FailureCard";
import { Progress } from "@/parts/Progress";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { errorLines, findLines, warningText } from "./buildlog";
import classes from "./panels.module.css";
import { DetailList } from "./RunPanel";
import type { Selection } from "./selection";
import { useLogAddress } from "./useLogAddress";

type BuildSelection = Extract<Selection, { kind: "build" }>;

/** Details of a build: failure, log, facts and the command to reproduce it. */
export function BuildPanel({
  selection,
  mainFailure,
}: {
  selection: BuildSelection;
  mainFailure: Failure | null;
}) {
  const { build } = selection;
  const { data: view, error } = useQuery(buildQuery(build.id, build.finished_at));
  return (
    <div className={classes.panel}>
      <div className={classes.head}>
        <div className={classes.title}>
          <h2>
            Build of the {build.arm} <span className="muted">#{build.id}</span>
          </h2>
          <StateBadge state={build.state} outcome={build.outcome} />
        </div>
        <span className="muted">
          {build.recipe}, {build.arch}
          {build.reused && ", reused from an earlier build of the same source"}
        </span>
      </div>
      {build.failure && (
        <FailureCard failure={build.failure} what={`build of the ${build.arm}`} mainFailure={mainFailure} />
      )}
      {build.has_log ? <LogOf selection={selection} view={view} /> : <NoLog build={build} />}
      {view ? <KernelFacts view={view} /> : error ? <p>{error.message}</p> : <Skeleton lines={6} />}
    </div>
  );
}

function NoLog({ build }: { build: BuildStep }) {
  if (build.state === "finished")
    return (
      <EmptyState title="No log">
        {build.outcome === "canceled"
          ? "The build was canceled before it finished."
          : "The build ended before the compiler ran, or the log could not be stored."}
      </EmptyState>
    );
  return (
    <div className={classes.nothing}>
      <Progress done={build.progress_done} total={build.progress_total} noun="steps">
        {oneLine(build.progress) || (build.state === "running" ? "Starting" : "Waiting for a builder")}
      </Progress>
      <p className="muted">The log is available when the build ends.</p>
    </div>
  );
}

function LogOf({ selection, view }: { selection: BuildSelection; view: BuildView | undefined }) {
  const { build } = selection;
  const file = useQuery(fileQuery(buildLogUrl(build.id)));
  if (file.error)
    return (
      <EmptyState title="The log could not be loaded">
        {file.error.message}{" "}
        <button type="button" className="button" onClick={() => void file.refetch()}>
          Retry
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
  const errors = useMemo(() => findLines(log, errorLines(clean(excerpt))), [log, excerpt]);
  // Open at the first error, unless the URL selects a line.
  const address = { ...chosen, line: chosen.line ?? errors[0] ?? null };
  const warnings = useMemo(() => view?.new_warnings ?? [], [view]);
  const placed = useMemo(
    () => warnings.map(each => ({ warning: each, line: findLines(log, [warningText(each)])[0] ?? null })),
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
        <DetailList title={count(errors.length, "error")}>
          {errors.map(line => (
            <li key={line}>
              {toLine(line)} <code>{clean(log.line(line) ?? "")}</code>
            </li>
          ))}
        </DetailList>
      )}
      {placed.length > 0 && (
        <DetailList title={count(placed.length, "new warning")}>
          {placed.map(({ warning, line }) => (
            <li key={`${warning.where} ${warning.text}`}>
              {line !== null && toLine(line)} <code>{clean(warning.where)}</code> {oneLine(warning.text)}{" "}
              {warning.option && <code className="muted">{clean(warning.option)}</code>}
            </li>
          ))}
        </DetailList>
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

function KernelFacts({ view }: { view: BuildView }) {
  return (
    <section className={classes.listed}>
      <h3>Kernel</h3>
      <Facts
        of={{
          Release: <>{view.release ? <code>{clean(view.release)}</code> : "\u2013"}</>,
          "Build-id": <>{view.build_id_gnu ? <code>{view.build_id_gnu}</code> : "\u2013"}</>,
          Base: (
            <>
              <code>{view.base_commit.slice(0, 12)}</code> of {view.tree}
            </>
          ),
          Source: (
            <>
              <code>{view.tree_oid.slice(0, 12)}</code> (git tree)
            </>
          ),
          Compiler: oneLine(view.compiler) || "\u2013",
          Duration: !view.duration_s ? "\u2013" : duration(view.duration_s),
          Files: view.artifacts.length > 0 && (
            <span className={classes.files}>
              {view.files_deleted_at ? (
                <span>deleted by retention on {view.files_deleted_at.slice(0, 10)}</span>
              ) : (
                view.artifacts.map(file => (
                  <a key={file.sha256} href={`/api/v1/builds/${view.id}/artifacts/${file.sha256}`}>
                    {oneLine(file.name)}
                  </a>
                ))
              )}
            </span>
          ),
        }}
      />
      {view.reproducer && (
        <CommandBlock
          label="Reproduce this build"
          commands={[{ name: "Build command", text: clean(view.reproducer) }]}
        />
      )}
    </section>
  );
}

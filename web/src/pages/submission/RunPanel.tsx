import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import type { BootStep, Failure, FindingView, RunStep } from "@/api/types";
import { LogView } from "@/console/LogView";
import type { Log } from "@/console/log";
import { consoleUrl } from "@/console/stream";
import { useConsole, useLogVersion } from "@/console/useLog";
import { NativeSelect } from "@/kit";
import { bytes } from "@/lib/numbers";
import { duration } from "@/lib/time";
import { humanize, oneLine } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { Facts } from "@/parts/Facts";
import { FailureCard } from "@/parts/FailureCard";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./panels.module.css";
import { type Selection, toBoot, toRun } from "./selection";
import { bootName, waitText } from "./steps";
import { useLogAddress } from "./useLogAddress";

type RunSelection = Extract<Selection, { kind: "run" }>;

/** Details of a run: console and facts of the selected boot. */
export function RunPanel({
  selection,
  mainFailure,
}: {
  selection: RunSelection;
  mainFailure: Failure | null;
}) {
  const { run, boot } = selection;
  return (
    <div className={classes.panel}>
      <BootHead selection={selection} />
      {boot ? (
        <BootConsole key={boot.id} selection={selection} boot={boot} />
      ) : (
        <div className={classes.nothing}>
          <EmptyState title={run.state === "finished" ? "No boots" : "No boots yet"}>
            {run.state === "finished"
              ? "The run failed before its first boot; see the failure below."
              : `${waitText(run, "")}.`}
          </EmptyState>
        </div>
      )}
      {run.failure && (
        <FailureCard
          failure={run.failure}
          what={`${run.plan} on ${run.device_type}`}
          mainFailure={mainFailure}
        />
      )}
      {boot && <BootFacts boot={boot} known={run.failure?.summary} />}
    </div>
  );
}

function BootHead({ selection: { run, boot, pinned } }: { selection: RunSelection }) {
  const navigate = useNavigate({ from: "/submissions/$id" });
  const at = run.boots.findIndex(each => each.id === boot?.id);
  const go = (to: BootStep | undefined) =>
    to && void navigate({ search: before => ({ ...before, ...toBoot(run.id, to.id) }), resetScroll: false });
  return (
    <div className={classes.head}>
      <div className={classes.title}>
        <h2>{boot ? `Console of boot ${bootName(boot)}` : "Console"}</h2>
        {boot && <StateBadge state={boot.state} outcome={boot.outcome} />}
      </div>
      <div className={classes.controls}>
        <span className={classes.following}>
          {run.state !== "finished" &&
            boot &&
            (pinned ? (
              <Link
                to="/submissions/$id"
                params={params => params as { id: number }}
                search={before => ({ ...before, ...toRun(run.id) })}
                resetScroll={false}
              >
                Follow the newest boot
              </Link>
            ) : (
              <span className="muted">following the newest boot</span>
            ))}
        </span>
        <NativeSelect
          aria-label="Boot"
          className={classes.boots}
          size="xs"
          disabled={run.boots.length === 0}
          value={boot ? String(boot.id) : ""}
          onChange={event => go(run.boots.find(each => String(each.id) === event.currentTarget.value))}
          data={
            run.boots.length === 0
              ? [{ value: "", label: "No boots yet" }]
              : run.boots.map(each => ({ value: String(each.id), label: optionOf(each) }))
          }
        />
        <button
          type="button"
          className="button"
          aria-label="Previous boot"
          disabled={at <= 0}
          onClick={() => go(run.boots[at - 1])}
        >
          ←
        </button>
        <button
          type="button"
          className="button"
          aria-label="Next boot"
          disabled={at === -1 || at === run.boots.length - 1}
          onClick={() => go(run.boots[at + 1])}
        >
          →
        </button>
      </div>
    </div>
  );
}

function optionOf(boot: BootStep): string {
  const ended = boot.state === "finished" ? (boot.outcome ?? "") : boot.state;
  const discarded =
    boot.state === "finished" && boot.outcome === "passed" && !boot.valid ? ", discarded" : "";
  return `${bootName(boot)}: ${ended}${discarded}`;
}

function BootConsole({ selection, boot }: { selection: RunSelection; boot: BootStep }) {
  const { run } = selection;
  const [tries, setTries] = useState(0);
  return (
    <OpenConsole
      key={tries}
      selection={selection}
      run={run}
      boot={boot}
      onRetry={() => setTries(tries + 1)}
    />
  );
}

interface OpenProps {
  selection: RunSelection;
  run: RunStep;
  boot: BootStep;
  onRetry(): void;
}

function OpenConsole({ selection, run, boot, onRetry }: OpenProps) {
  const log = useConsole(run.id, boot.id);
  const findings = useMemo(
    () =>
      run.findings.filter(
        each => each.block === boot.block && each.attempt === boot.attempt && each.arm === boot.arm,
      ),
    [run.findings, boot.block, boot.attempt, boot.arm],
  );
  if (!log) return <div className={classes.console} />;
  return <ReadConsole {...{ selection, run, boot, onRetry, log, findings }} />;
}

function ReadConsole({
  selection,
  run,
  boot,
  log,
  findings,
  onRetry,
}: OpenProps & { log: Log; findings: readonly FindingView[] }) {
  const { address: chosen, onAddress, lineHref } = useLogAddress(selection);
  const version = useLogVersion(log);
  // biome-ignore lint/correctness/useExhaustiveDependencies: line numbers of findings depend on the text loaded so far
  const found = useMemo(
    () =>
      findings
        .filter(each => each.console_offset < log.bytes)
        .map(finding => ({ finding, line: log.lineAt(finding.console_offset) })),
    [findings, log, version],
  );
  // Open at the fatal finding, unless the URL selects a line.
  const fatal = boot.state === "finished" ? found.find(each => each.finding.fatal)?.line : undefined;
  const address = { ...chosen, line: chosen.line ?? fatal ?? null };
  const lines = found.map(each => each.line).join(" ");
  const marked = useMemo(() => new Set(lines.split(" ").filter(Boolean).map(Number)), [lines]);
  return (
    <>
      <div className={classes.console}>
        <LogView
          log={log}
          name={`Console of boot ${bootName(boot)} of run ${run.id}`}
          address={address}
          onAddress={onAddress}
          lineHref={lineHref}
          download={{ href: consoleUrl(run.id, boot.id), file: `run-${run.id}-boot-${boot.id}-console.txt` }}
          marked={marked}
          grows
          note={boot.console_truncated && "The console exceeded the lab's size limit and was truncated."}
          empty={boot.state === "finished" ? "The device printed nothing." : "No output yet."}
          onRetry={onRetry}
        />
      </div>
      {found.length > 0 && (
        <DetailList title="Findings">
          {found.map(({ finding, line }) => (
            <li key={`${finding.kind} ${finding.console_offset}`}>
              <a
                href={lineHref(line)}
                onClick={event => {
                  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                  event.preventDefault();
                  onAddress({ line }, false);
                }}
              >
                line {line}
              </a>{" "}
              <strong>{humanize(finding.kind)}</strong>: {oneLine(finding.title)}{" "}
              <span className="muted">({finding.fatal ? "fatal" : "not fatal"})</span>
            </li>
          ))}
        </DetailList>
      )}
    </>
  );
}

export function DetailList({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={classes.listed}>
      <h3>{title}</h3>
      <ul>{children}</ul>
    </section>
  );
}

/** `known`: summary of a failure already shown above. */
function BootFacts({ boot, known }: { boot: BootStep; known: string | undefined }) {
  const failure = boot.failure?.summary === known ? null : boot.failure;
  const seconds = (until: string | null) =>
    until === null ? "\u2013" : duration((Date.parse(until) - Date.parse(boot.started_at)) / 1000);
  return (
    <section className={classes.listed}>
      <h3>Boot</h3>
      <Facts
        of={{
          Boot: (
            <>
              {boot.arm} of block {boot.block + 1}, attempt {boot.attempt + 1}, on {boot.device}
            </>
          ),
          Started: <RelativeTime at={boot.started_at} />,
          "Kernel verified": <>{boot.verified_at ? `after ${seconds(boot.verified_at)}` : "no"}</>,
          Duration: boot.finished_at && seconds(boot.finished_at),
          Valid: validityText(boot),
          Console: bytes(boot.console_bytes),
          Failure: failure && (
            <>
              {oneLine(failure.summary)}
              {failure.advice && <> What to do: {oneLine(failure.advice)}</>}
            </>
          ),
        }}
      />
    </section>
  );
}

function validityText(boot: BootStep): string {
  if (boot.valid) return "yes";
  if (boot.state !== "finished") return "once its block is complete";
  return boot.outcome === "passed" ? "only if its block is completed" : "no";
}

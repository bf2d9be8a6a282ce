/** Columns of the tables on a device's page. */
import { Link } from "@tanstack/react-router";
import type { BootConsole, DeviceRun, HealthChange } from "@/api/types";
import { bytes } from "@/lib/numbers";
import { duration } from "@/lib/time";
import { humanize, oneLine } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { FailureCard } from "@/parts/FailureCard";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./LabPage.module.css";

export const HEALTH_COLUMNS: Column<HealthChange>[] = [
  { id: "at", header: "Time", value: of => of.at, time: true },
  {
    id: "health",
    header: "Health",
    rowHeader: true,
    value: of => of.health,
    cell: of => <StateBadge state={of.health} />,
  },
  { id: "by", header: "Changed by", value: of => of.by },
  { id: "reason", header: "Reason", wrap: true, value: of => oneLine(of.reason) },
];

export function runColumns(name: string): Column<DeviceRun>[] {
  return [
    { id: "began", header: "Started", value: of => of.started_at, time: true },
    {
      id: "what",
      header: "Run",
      rowHeader: true,
      value: runText,
      cell: of => (
        <>
          {of.submission_id === null ? (
            runText(of)
          ) : (
            <Link to="/submissions/$id" params={{ id: of.submission_id }} search={{ run: of.run_id }}>
              {runText(of)}
            </Link>
          )}
          <span className={classes.note}>
            {of.plan}, {of.owner}
            {of.attempt > 1 && `, attempt ${of.attempt}`}
          </span>
        </>
      ),
    },
    {
      id: "ended",
      header: "Outcome",
      wrap: true,
      value: outcomeText,
      cell: of => <Outcome of={of} />,
    },
    {
      id: "took",
      header: "Duration (h:min:s)",
      numeric: true,
      value: of => seconds(of),
      text: of => (of.finished_at ? duration(seconds(of) ?? 0) : ""),
    },
    { id: "boots", header: "Boots", numeric: true, value: of => of.boots },
    {
      id: "console",
      header: "Last console",
      sortable: false,
      value: of => of.last_boot_id,
      cell: of =>
        of.last_boot_id !== null && (
          <ConsoleLink
            name={name}
            submission={of.submission_id}
            run={of.run_id}
            boot={of.last_boot_id}
            text={`boot ${of.last_boot_id}`}
          />
        ),
    },
  ];
}

export function consoleColumns(name: string): Column<BootConsole>[] {
  return [
    {
      id: "boot",
      header: "Boot",
      rowHeader: true,
      value: of => of.boot_id,
      cell: of => (
        <ConsoleLink
          name={name}
          submission={of.submission_id}
          run={of.run_id}
          boot={of.boot_id}
          text={bootText(of)}
        />
      ),
    },
    { id: "began", header: "Started", value: of => of.started_at, time: true },
    {
      id: "state",
      header: "Outcome",
      wrap: true,
      value: of => of.outcome ?? of.state,
      cell: of => (
        <>
          <StateBadge state={of.state} outcome={of.outcome} />
          {of.failure && <span className={classes.note}>{oneLine(of.failure)}</span>}
        </>
      ),
    },
    {
      id: "size",
      header: "Size",
      numeric: true,
      value: of => of.console_bytes,
      text: of => bytes(of.console_bytes) + (of.console_truncated ? ", truncated" : ""),
    },
  ];
}

interface ConsoleLinkProps {
  name: string;
  submission: number | null;
  run: number;
  boot: number;
  text: string;
}

/** Link to a boot's console: on the submission's page, or on the device's page for health checks. */
function ConsoleLink({ name, submission, run, boot, text }: ConsoleLinkProps) {
  return submission === null ? (
    <Link to="/lab/$name" params={{ name }} search={{ run, boot }} hash="console">
      {text}
    </Link>
  ) : (
    <Link to="/submissions/$id" params={{ id: submission }} search={{ run, boot }}>
      {text}
    </Link>
  );
}

/** `xfs-fsync, boot 3B of submission 4`. */
function bootText(of: BootConsole): string {
  if (of.submission_id === null) return `${humanize(of.purpose)}, boot ${of.boot_id}`;
  const letter = of.arm === "baseline" ? "A" : "B";
  return `${of.plan}, boot ${of.block + 1}${letter} of submission ${of.submission_id}`;
}

function Outcome({ of }: { of: DeviceRun }) {
  return (
    <>
      <StateBadge state={of.outcome === null ? "running" : "finished"} outcome={of.outcome} />
      {of.failure_detail ? (
        <details>
          <summary className={classes.why}>{failureText(of)}</summary>
          <FailureCard failure={of.failure_detail} />
        </details>
      ) : (
        of.failure && <span className={classes.note}>{failureText(of)}</span>
      )}
    </>
  );
}

function failureText(of: DeviceRun): string {
  return `${of.failure_kind ? `${of.failure_kind}: ` : ""}${oneLine(of.failure)}`;
}

function outcomeText(of: DeviceRun): string {
  return `${of.outcome ?? "running"}${of.failure ? ` (${failureText(of)})` : ""}`;
}

function runText(of: DeviceRun): string {
  if (of.submission_id === null) return humanize(of.purpose);
  return `${of.submission_id}: ${oneLine(of.title) || "untitled"}`;
}

function seconds(of: DeviceRun): number | null {
  if (!of.finished_at) return null;
  return (new Date(of.finished_at).getTime() - new Date(of.started_at).getTime()) / 1000;
}

/** The tables of a device's history. */
import { Link } from "@tanstack/react-router";
import type { BootConsole, DeviceRun, HealthChange } from "@/api/types";
import { bytes } from "@/lib/numbers";
import { duration } from "@/lib/time";
import { oneLine, spoken, WHOSE } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { FailureCard } from "@/parts/FailureCard";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./LabPage.module.css";

export const HEALTH_COLUMNS: Column<HealthChange>[] = [
  { id: "at", header: "when", value: of => of.at, cell: of => <RelativeTime at={of.at} /> },
  {
    id: "health",
    header: "health",
    rowHeader: true,
    value: of => of.health,
    cell: of => <StateBadge state={of.health} />,
  },
  { id: "by", header: "by", value: of => of.by },
  { id: "reason", header: "why", wrap: true, value: of => oneLine(of.reason) },
];

export function runColumns(name: string): Column<DeviceRun>[] {
  return [
    {
      id: "began",
      header: "began",
      value: of => of.started_at,
      cell: of => <RelativeTime at={of.started_at} />,
    },
    {
      id: "what",
      header: "run",
      rowHeader: true,
      value: whatOf,
      cell: of => (
        <>
          {of.submission_id === null ? (
            whatOf(of)
          ) : (
            <Link to="/submissions/$id" params={{ id: of.submission_id }} search={{ run: of.run_id }}>
              {whatOf(of)}
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
      header: "run ended",
      wrap: true,
      value: endedText,
      cell: of => <Ended of={of} />,
    },
    {
      id: "took",
      header: "took (h:min:s)",
      numeric: true,
      value: of => seconds(of),
      text: of => (of.finished_at ? duration(seconds(of) ?? 0) : ""),
    },
    { id: "boots", header: "boots", numeric: true, value: of => of.boots },
    {
      id: "console",
      header: "last console",
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
      header: "boot",
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
    {
      id: "began",
      header: "began",
      value: of => of.started_at,
      cell: of => <RelativeTime at={of.started_at} />,
    },
    {
      id: "state",
      header: "ended",
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
      header: "printed",
      numeric: true,
      value: of => of.console_bytes,
      text: of => bytes(of.console_bytes) + (of.console_truncated ? ", cut" : ""),
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

/** A submission's console is read with its run; the lab's own, of health checks, with the device. */
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
  if (of.submission_id === null) return `${spoken(of.purpose)}, boot ${of.boot_id}`;
  const letter = of.arm === "baseline" ? "A" : "B";
  return `${of.plan}, boot ${of.block + 1}${letter} of submission ${of.submission_id}`;
}

function Ended({ of }: { of: DeviceRun }) {
  return (
    <>
      <StateBadge state={of.outcome === null ? "running" : "finished"} outcome={of.outcome} />
      {of.failure_detail ? (
        <details>
          <summary className={classes.why}>{why(of)}</summary>
          <FailureCard failure={of.failure_detail} />
        </details>
      ) : (
        of.failure && <span className={classes.note}>{why(of)}</span>
      )}
    </>
  );
}

function why(of: DeviceRun): string {
  return `${of.failure_kind ? `${WHOSE[of.failure_kind].word}: ` : ""}${oneLine(of.failure)}`;
}

function endedText(of: DeviceRun): string {
  return `${of.outcome ?? "running"}${of.failure ? ` (${why(of)})` : ""}`;
}

function whatOf(of: DeviceRun): string {
  if (of.submission_id === null) return spoken(of.purpose);
  return `${of.submission_id}: ${oneLine(of.title) || "untitled"}`;
}

function seconds(of: DeviceRun): number | null {
  if (!of.finished_at) return null;
  return (new Date(of.finished_at).getTime() - new Date(of.started_at).getTime()) / 1000;
}

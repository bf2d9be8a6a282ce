import { Link } from "@tanstack/react-router";
import type { SubmissionSummary } from "@/api/types";
import { oneLine } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { StateBadge } from "@/parts/StateBadge";
import { TargetVerdicts, targetVerdictsText } from "@/parts/TargetVerdicts";
import classes from "./SubmissionsPage.module.css";

export const columns: Column<SubmissionSummary>[] = [
  { id: "id", header: "ID", numeric: true, bare: true, value: of => of.id },
  {
    id: "title",
    header: "Title",
    rowHeader: true,
    value: of => of.title,
    text: of => `${version(of)}${oneLine(of.title)}`,
    cell: of => (
      <>
        <Link to="/submissions/$id" params={{ id: of.id }}>
          {oneLine(of.title) || `Submission ${of.id}`}
        </Link>{" "}
        {of.version != null && of.series_key && (
          <Link
            to="/series/$id"
            params={{ id: of.id }}
            className={classes.version}
            title="All versions of this series"
          >
            v{of.version}
          </Link>
        )}
        {of.author && <span className={classes.author}>{name(of.author)}</span>}
      </>
    ),
  },
  {
    id: "verdicts",
    header: "Verdicts",
    wrap: true,
    value: of => of.targets.length,
    text: of => targetVerdictsText(of.targets),
    cell: of => <TargetVerdicts targets={of.targets} />,
  },
  {
    id: "state",
    header: "State",
    bare: true,
    value: of => of.outcome ?? of.state,
    cell: of => (
      <>
        <StateBadge state={of.state} outcome={of.outcome} />
        {of.outcome === "failed" && of.failure && <span className="muted">: {of.failure.kind}</span>}
      </>
    ),
  },
  { id: "tree", header: "Tree", bare: true, value: of => of.tree },
  {
    id: "owner",
    header: "Owner",
    value: of => of.owner,
    cell: of => (
      <span className={classes.owner} title={of.owner}>
        {of.owner}
      </span>
    ),
  },
  { id: "created", header: "Submitted", bare: true, value: of => of.created_at, time: true },
];

function version(of: SubmissionSummary): string {
  return of.version != null && of.version > 1 ? `v${of.version} ` : "";
}

/** Strip the address: `Tejun Heo <tj@kernel.org>` -> `Tejun Heo`. */
function name(author: string): string {
  return oneLine(author.replace(/\s*<[^>]*>\s*$/, "")) || oneLine(author);
}

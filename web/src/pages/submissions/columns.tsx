import { Link } from "@tanstack/react-router";
import type { SubmissionSummary } from "@/api/types";
import { oneLine, WHOSE } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { RelativeTime } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { TargetVerdicts, targetVerdictsText } from "@/parts/TargetVerdicts";
import classes from "./SubmissionsPage.module.css";

export const columns: Column<SubmissionSummary>[] = [
  { id: "id", header: "no.", numeric: true, bare: true, value: of => of.id },
  {
    id: "title",
    header: "title",
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
            to="/submissions"
            search={{ series: of.series_key }}
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
    header: "per topology",
    wrap: true,
    value: of => of.targets.length,
    text: of => targetVerdictsText(of.targets),
    cell: of => <TargetVerdicts targets={of.targets} />,
  },
  {
    id: "state",
    header: "state",
    bare: true,
    value: of => of.outcome ?? of.state,
    cell: of => (
      <>
        <StateBadge state={of.state} outcome={of.outcome} />
        {of.outcome === "failed" && of.failure && (
          <span className="muted">: {WHOSE[of.failure.kind].word}</span>
        )}
      </>
    ),
  },
  { id: "tree", header: "tree", bare: true, value: of => of.tree },
  {
    id: "owner",
    header: "owner",
    value: of => of.owner,
    cell: of => (
      <span className={classes.owner} title={of.owner}>
        {of.owner}
      </span>
    ),
  },
  {
    id: "created",
    header: "submitted",
    bare: true,
    value: of => of.created_at,
    cell: of => <RelativeTime at={of.created_at} />,
  },
];

/** Boxes to choose two by; a third pushes the first out. */
export function compareColumn(
  chosen: readonly number[],
  choose: (ids: readonly number[]) => void,
): Column<SubmissionSummary> {
  return {
    id: "compare",
    header: "compare",
    value: () => "",
    cell: of => (
      <input
        type="checkbox"
        className={classes.choose}
        aria-label={`Compare submission ${of.id}`}
        checked={chosen.includes(of.id)}
        onChange={event =>
          choose(event.target.checked ? [...chosen, of.id].slice(-2) : chosen.filter(id => id !== of.id))
        }
      />
    ),
  };
}

function version(of: SubmissionSummary): string {
  return of.version != null && of.version > 1 ? `v${of.version} ` : "";
}

/** `Tejun Heo` of `Tejun Heo <tj@kernel.org>`. */
function name(author: string): string {
  return oneLine(author.replace(/\s*<[^>]*>\s*$/, "")) || oneLine(author);
}

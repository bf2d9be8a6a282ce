/** Columns of the tables of commits and of measurements. */
import { Link } from "@tanstack/react-router";
import type { BisectionData, BisectionStep } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./bisections.module.css";
import { chanceText, KIND_WORDS, measuredText, shortCommit, stepText } from "./labels";
import type { CommitRow } from "./rows";

export function commitColumns(of: BisectionData): readonly Column<CommitRow>[] {
  return [
    {
      id: "commit",
      header: "Commit",
      rowHeader: true,
      value: row => (row.commit ? shortCommit(row.commit.commit) : count(row.count, "commit")),
      cell: row => <CommitCell of={of} row={row} />,
    },
    {
      id: "probability",
      header: "Probability",
      hint: "That it is the culprit",
      value: row => row.probability,
      text: row => chanceText(row.probability),
      cell: row => (
        <span className={classes.chance}>
          <span className={classes.bar} aria-hidden="true">
            <span style={{ width: `${100 * row.probability}%` }} />
          </span>
          <span className={classes.percent}>{chanceText(row.probability)}</span>
        </span>
      ),
    },
    {
      id: "measured",
      header: "Against good",
      hint: "Difference from the good commit, with its 95 % interval",
      wrap: true,
      value: row => (row.commit ? measuredText(of, row.commit) : ""),
      cell: row =>
        !row.commit ? null : measuredText(of, row.commit) ? (
          <span className={classes.measured} data-unusable={row.commit.unusable !== "" || undefined}>
            {measuredText(of, row.commit)}
          </span>
        ) : (
          <span className="muted">not measured</span>
        ),
    },
    {
      id: "submissions",
      header: "Submissions",
      wrap: true,
      value: row => (row.commit?.submissions ?? []).join(", "),
      cell: row => (
        <span className={classes.links}>
          {row.commit?.submissions.map(id => (
            <Link key={id} to="/submissions/$id" params={{ id }} className={classes.target}>
              {id}
            </Link>
          ))}
        </span>
      ),
    },
  ];
}

function CommitCell({ of, row }: { of: BisectionData; row: CommitRow }) {
  const { commit } = row;
  if (!commit) return <span className="muted">{count(row.count, "commit")} not measured</span>;
  const found = commit.commit === of.culprit?.commit;
  return (
    <span className={classes.commit}>
      <code>{shortCommit(commit.commit)}</code>{" "}
      <span className={classes.long}>{oneLine(commit.subject)}</span>{" "}
      {commit.is_merge && <span className="muted">(merge)</span>}
      {found && <span className={classes.found}>{of.state === "found" ? "culprit" : "suspect"}</span>}
    </span>
  );
}

export function stepColumns(of: BisectionData): readonly Column<BisectionStep>[] {
  return [
    {
      id: "submission",
      header: "Submission",
      rowHeader: true,
      value: step => step.submission_id,
      cell: step => (
        <Link to="/submissions/$id" params={{ id: step.submission_id }} className={classes.target}>
          submission {step.submission_id}
        </Link>
      ),
    },
    { id: "kind", header: "Measures", value: step => KIND_WORDS[step.kind] },
    {
      id: "commits",
      header: "Commits",
      value: step => `${shortCommit(step.baseline)}..${shortCommit(step.candidate)}`,
      cell: step => (
        <code className={classes.long}>
          {shortCommit(step.baseline)}..{shortCommit(step.candidate)}
        </code>
      ),
    },
    {
      id: "state",
      header: "State",
      value: step => step.state,
      cell: step => <StateBadge state={step.state} />,
    },
    { id: "result", header: "Result", wrap: true, value: step => stepText(of, step) },
    { id: "boots", header: "Boots", numeric: true, value: step => step.boots },
    { id: "at", header: "Submitted", value: step => step.submitted_at, time: true },
  ];
}

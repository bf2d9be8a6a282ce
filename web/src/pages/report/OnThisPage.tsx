import { Link } from "@tanstack/react-router";
import type { Report } from "@/api/types";
import { appliesMethod, otherAttempts, shownComparisons } from "./failures";
import classes from "./OnThisPage.module.css";

/** Mark a link within the page as current only if its hash matches. */
export const MATCH_HASH = { includeHash: true } as const;

/** Table of contents. */
export function OnThisPage({ report }: { report: Report }) {
  const compared = report.targets.some(target => shownComparisons(report, target).length > 0);
  const { failure } = report.submission;
  const attempts = otherAttempts(report).length;
  const parts = [
    ...(compared
      ? [
          ["cell", "Selected comparison"],
          ["numbers", "All comparisons"],
        ]
      : []),
    ...report.targets.map(target => [`run-${target.run_id}`, `${target.plan.name} on ${target.device_type}`]),
    ["kernels", "Kernels"],
    ...(failure
      ? attempts > 0
        ? [["attempts", `Other failed attempts (${attempts})`]]
        : []
      : [["attempts", `Failed attempts (${attempts})`]]),
    ...(appliesMethod(report) ? [["method", "Method"]] : []),
  ];
  return (
    <nav className={`${classes.parts} no-print`} aria-label="On this page">
      <strong>Everything else</strong>
      {parts.map(([id, name]) => (
        <Link key={id} to="." search hash={id as string} activeOptions={MATCH_HASH}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

import { Link } from "@tanstack/react-router";
import type { Report } from "@/api/types";
import classes from "./OnThisPage.module.css";

/** A link within the page is the current one only when its part is. */
export const HERE = { includeHash: true } as const;

/** What is where, to jump to and to link to. */
export function OnThisPage({ report }: { report: Report }) {
  const compared = report.targets.some(target => target.comparisons.length > 0);
  const parts = [
    ...(compared
      ? [
          ["matrix", "Verdicts"],
          ["cell", "One comparison"],
          ["numbers", "All numbers"],
        ]
      : []),
    ...report.targets.map(target => [`run-${target.run_id}`, `${target.plan.name} on ${target.device_type}`]),
    ["kernels", "Kernels"],
    ["attempts", `Failed attempts (${report.attempts.length})`],
    ["mail", "Text for the list"],
    ["method", "Method"],
  ];
  return (
    <nav className={`${classes.parts} no-print`} aria-label="On this page">
      {parts.map(([id, name]) => (
        <Link key={id} to="." search hash={id as string} activeOptions={HERE}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

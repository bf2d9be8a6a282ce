import { Link } from "@tanstack/react-router";
import type { Report } from "@/api/types";
import { CopyButton } from "@/parts/CopyButton";
import classes from "./Share.module.css";

const FORMATS = [
  { format: "text", name: "Text", suffix: "txt" },
  { format: "markdown", name: "Markdown", suffix: "md" },
  { format: "json", name: "JSON", suffix: "json" },
  { format: "junit", name: "JUnit", suffix: "xml" },
  { format: "mmtests", name: "MMTests", suffix: "mmtests" },
  { format: "kcidb", name: "KCIDB", suffix: "kcidb.json" },
] as const;

/** Share and download buttons: permanent link, files and the series. */
export function Share({ report }: { report: Report }) {
  const { id } = report.submission;
  const measured = report.targets.filter(target => target.values.length > 0);
  return (
    <div className={classes.whole}>
      <div className={classes.line}>
        <CopyButton label="Copy link" text={permalink(report)} />
        <Link to="/series/$id" params={{ id }}>
          All versions
        </Link>
      </div>
      <div className={classes.line}>
        <span className="muted">Download</span>
        {formats(report).map(({ format, name, suffix }) => (
          <a
            key={format}
            href={`/api/v1/submissions/${id}/report?format=${format}`}
            download={`wqlab-${id}.${suffix}`}
          >
            {name}
          </a>
        ))}
        {measured.length === 1 && <a href={csv(measured[0]?.run_id)}>CSV</a>}
        {measured.length > 1 && (
          <details className={classes.more}>
            <summary>CSV</summary>
            <ul>
              {measured.map(target => (
                <li key={target.run_id}>
                  <a href={csv(target.run_id)}>
                    {target.plan.name} on {target.device_type}
                  </a>
                </li>
              ))}
            </ul>
          </details>
        )}
        {report.submission.state === "finished" && (
          <a
            href={`/api/v1/submissions/${id}/bundle`}
            title="Everything that the verdicts depend on, signed: check it with `wqlab replay`"
          >
            Bundle
          </a>
        )}
      </div>
    </div>
  );
}

/** Return the formats to offer: KCIDB takes final results only. */
function formats({ submission }: Report) {
  return FORMATS.filter(({ format }) => format !== "kcidb" || submission.state === "finished");
}

/** Return the permanent link of the report, for use in mails; served without scripts. */
export function permalink({ lab_url, submission }: Report): string {
  return `${lab_url.replace(/\/+$/, "")}/r/${submission.id}`;
}

function csv(run: number | undefined): string {
  return `/api/v1/runs/${run}/samples?format=csv`;
}

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { reportTextQuery, versionsQuery } from "@/api/queries";
import type { Report } from "@/api/types";
import { CopyButton } from "@/parts/CopyButton";
import classes from "./Share.module.css";

const FORMATS = [
  { format: "text", name: "text", suffix: "txt" },
  { format: "markdown", name: "Markdown", suffix: "md" },
  { format: "json", name: "JSON", suffix: "json" },
  { format: "junit", name: "JUnit", suffix: "xml" },
  { format: "mmtests", name: "MMTests", suffix: "mmtests" },
] as const;

/** Everything that carries the report elsewhere: text for a mail, its lasting link, files. */
export function Share({ report }: { report: Report }) {
  const { id } = report.submission;
  const client = useQueryClient();
  const measured = report.targets.filter(target => target.values.length > 0);
  return (
    <div className={classes.whole}>
      <div className={classes.line}>
        <CopyButton label="Copy text for the list" text={() => client.ensureQueryData(reportTextQuery(id))} />
        <CopyButton label="Copy link" text={lastingLink(report)} />
        <Versions id={id} />
      </div>
      <div className={classes.line}>
        <span className="muted">Download</span>
        {FORMATS.map(({ format, name, suffix }) => (
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
      </div>
    </div>
  );
}

/** The link for a mail: it is served without scripts, for ever. */
export function lastingLink({ lab_url, submission }: Report): string {
  return `${lab_url.replace(/\/+$/, "")}/r/${submission.id}`;
}

function csv(run: number | undefined): string {
  return `/api/v1/runs/${run}/samples?format=csv`;
}

/** The version before this one, to compare with. */
function Versions({ id }: { id: number }) {
  const { data } = useQuery({ ...versionsQuery(id), throwOnError: false });
  const before = data?.filter(version => version.id < id).toSorted((a, b) => b.id - a.id)[0];
  if (!before) return null;
  return (
    <Link to="/compare" search={{ first: before.id, second: id }}>
      Compare with {before.version === null ? `submission ${before.id}` : `v${before.version}`}
    </Link>
  );
}

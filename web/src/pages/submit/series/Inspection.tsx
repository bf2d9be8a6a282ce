import type { FileChange, SeriesInspection, SeriesPatch } from "@/api/types";
import { count, grouped } from "@/lib/numbers";
import { clean, oneLine } from "@/lib/words";
import { Facts } from "@/parts/Facts";
import { RelativeTime } from "@/parts/RelativeTime";
import { Scroll } from "@/parts/Scroll";
import classes from "./Inspection.module.css";

/** Patches of a series as the lab has read them: problems, series and patches with diffstat. */
export function Inspection({ of, from = "mbox" }: { of: SeriesInspection; from?: "mbox" | "branch" }) {
  return (
    <section className={classes.whole} aria-label={`Contents of the ${from}`}>
      {of.problems.length > 0 && (
        <ul className={classes.problems}>
          {of.problems.map(problem => (
            <li key={problem.detail} className={classes.problem} data-severity={problem.severity}>
              <strong>{problem.severity}</strong> {oneLine(problem.detail)}
            </li>
          ))}
        </ul>
      )}
      {of.patches.length > 0 && (
        <>
          <div>
            <h3 className={classes.subject}>{oneLine(of.subject) || "(no subject)"}</h3>
            <p className="muted">
              {from === "mbox" && `v${of.version} · `}
              {count(of.patches.length, "patch", "patches")} · {count(of.files, "file")}{" "}
              <Changed insertions={of.insertions} deletions={of.deletions} />
              {from === "mbox" && of.mails > of.patches.length && ` · ${count(of.mails, "mail")} in the mbox`}
            </p>
          </div>
          <Facts
            of={{
              [of.authors.length === 1 ? "Author" : "Authors"]: of.authors.map(oneLine).join(", "),
              "Base commit": of.base_commit && <code>{of.base_commit}</code>,
            }}
          />
          <details open={of.patches.length === 1 && !of.cover}>
            <summary>{of.cover ? "Cover letter and patches" : "Patches"}</summary>
            {of.cover && (
              <Scroll name="Cover letter" className={classes.mail}>
                <pre>{clean(of.cover.text)}</pre>
              </Scroll>
            )}
            <ol className={classes.patches}>
              {of.patches.map(patch => (
                <li key={patch.position}>
                  <Patch patch={patch} of={of.patches.length} />
                </li>
              ))}
            </ol>
          </details>
        </>
      )}
    </section>
  );
}

function Patch({ patch, of }: { patch: SeriesPatch; of: number }) {
  return (
    <details className={classes.patch} open={of === 1}>
      <summary className={classes.head}>
        <span className="muted">
          {patch.position}/{of}
        </span>
        <span className={classes.title}>{oneLine(patch.subject) || "(no subject)"}</span>
        <Changed insertions={patch.insertions} deletions={patch.deletions} />
      </summary>
      <div className={classes.inside}>
        <p className="muted">
          {oneLine(patch.author)}, <RelativeTime at={patch.date} absent="no date" />
        </p>
        {patch.message && (
          <Scroll name={`Message of patch ${patch.position}`} className={classes.mail}>
            <pre>{clean(patch.message)}</pre>
          </Scroll>
        )}
        <Diffstat files={patch.files} />
      </div>
    </details>
  );
}

/** Diffstat table, similar to `git diff --stat`. */
function Diffstat({ files }: { files: readonly FileChange[] }) {
  const most = Math.max(1, ...files.map(file => file.insertions + file.deletions));
  return (
    <table className={classes.stat}>
      <caption className="hidden-visually">Changed files</caption>
      <thead className="hidden-visually">
        <tr>
          <th scope="col">File</th>
          <th scope="col">Lines added and removed</th>
          <th scope="col">Share</th>
        </tr>
      </thead>
      <tbody>
        {files.map(file => (
          <tr key={file.path}>
            <th scope="row" className={classes.path}>
              {file.old_path && <span className="muted">{oneLine(file.old_path)} → </span>}
              {oneLine(file.path)}
              {file.status !== "changed" && <span className="muted"> {file.status}</span>}
            </th>
            <td className={classes.size}>
              {file.binary ? <span className="muted">binary</span> : <Changed {...file} />}
            </td>
            <td className={classes.bar} aria-hidden="true">
              <span data-sign="+" style={{ width: `${(file.insertions / most) * 100}%` }} />
              <span data-sign="-" style={{ width: `${(file.deletions / most) * 100}%` }} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Changed({ insertions, deletions }: { insertions: number; deletions: number }) {
  return (
    <span className="nowrap">
      <span className={classes.added}>+{grouped(insertions)}</span>{" "}
      <span className={classes.removed}>−{grouped(deletions)}</span>
    </span>
  );
}

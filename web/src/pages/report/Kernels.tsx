/** The compared kernels: source, builds, configuration and build commands. */
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { BuildView, Report } from "@/api/types";
import { count } from "@/lib/numbers";
import { roughDuration } from "@/lib/time";
import { clean, isSameFailure, oneLine } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { type Column, DataTable } from "@/parts/DataTable";
import { FailureCard } from "@/parts/FailureCard";
import { Section } from "@/parts/Page";
import { Scroll } from "@/parts/Scroll";
import { TakenMails } from "@/parts/TakenMails";
import { appliesRebuilding } from "./failures";
import classes from "./Kernels.module.css";

export const Kernels = memo(function Kernels({ report }: { report: Report }) {
  const { submission, config_compared, config_diff, config_sha256 } = report;
  const { apply } = submission;
  const reproducers = appliesRebuilding(report)
    ? [...Map.groupBy(submission.builds, build => build.reproducer)].filter(([text]) => text)
    : [];
  const bothBuilt =
    new Set(submission.builds.filter(of => of.outcome === "passed").map(of => of.arm)).size > 1;
  const study = submission.request.series === null;
  return (
    <Section id="kernels" title="Kernels">
      {apply.base_commit && (
        <p>
          Base: {submission.tree} <code>{apply.base_commit}</code>
          {apply.release && ` (${apply.release})`}
        </p>
      )}
      {apply.thread && <TakenMails of={apply.thread} />}
      {apply.patches.length > 0 && (
        <ol className={classes.patches}>
          {apply.patches.map(patch => (
            <li key={`${patch.message_id} ${patch.subject}`}>
              {oneLine(patch.subject)}{" "}
              <span className="muted">
                {oneLine(patch.author)}, +{patch.insertions} −{patch.deletions}
              </span>
            </li>
          ))}
        </ol>
      )}
      {submission.builds.length > 0 && (
        <DataTable
          caption="Builds"
          captionHidden
          columns={BUILDS}
          rows={submission.builds}
          rowKey={build => build.id}
        />
      )}
      {submission.builds.map(
        build =>
          build.failure &&
          !isSameFailure(build.failure, submission.failure) && (
            <FailureCard
              key={build.id}
              failure={build.failure}
              what={`build of the ${build.arm ?? "kernel"}`}
              actions={
                <Link to="/submissions/$id" params={{ id: submission.id }}>
                  Log
                </Link>
              }
            />
          ),
      )}
      {submission.builds.map(build => (
        <Warnings key={build.id} build={build} />
      ))}
      {(config_sha256 || config_diff.length > 0) && (
        <div>
          <h3>Configuration</h3>
          {config_sha256 && (
            <p className={classes.small}>
              sha256 <code>{config_sha256}</code>
            </p>
          )}
          {config_diff.length > 0 ? (
            <>
              <p className={classes.small}>Different options, baseline to candidate:</p>
              <Scroll name="Different options" className={classes.text}>
                <pre>{clean(config_diff.join("\n"))}</pre>
              </Scroll>
            </>
          ) : (
            <p className={classes.small}>
              {!bothBuilt
                ? "Only one kernel was built."
                : config_compared
                  ? "Both kernels have the same options."
                  : "Not compared: the configurations of both kernels are not available."}
            </p>
          )}
        </div>
      )}
      {!study && (!submission.failure || apply.outcome === "passed") && <Checkpatch report={report} />}
      {reproducers.map(([text, builds]) => (
        <div key={text}>
          <div className={classes.head}>
            <h3>Reproduce the {builds.length > 1 ? "builds" : "build"}</h3>
            <CopyButton text={text} name="Copy the build command" />
          </div>
          <p className={classes.small}>
            Requires the source in linux/{study ? "" : " (with the series applied for the candidate)"}, the
            configuration next to it (
            <code>
              wqlab logs {submission.id} --build {builds[0]?.id} --config -o config
            </code>
            ), tuxmake and the compiler listed above:
          </p>
          <Scroll name="Build command" className={classes.text}>
            <pre>{clean(text)}</pre>
          </Scroll>
        </div>
      ))}
    </Section>
  );
});

const BUILDS: Column<BuildView>[] = [
  { id: "arm", header: "Kernel", value: of => of.arm ?? "kernel", rowHeader: true },
  { id: "release", header: "Release", value: of => of.release },
  { id: "recipe", header: "Recipe", value: of => `${of.recipe}, ${of.arch}` },
  {
    id: "tree",
    header: "Source tree",
    value: of => of.tree_oid,
    cell: of => <code title={of.tree_oid}>{of.tree_oid.slice(0, 12)}</code>,
  },
  {
    id: "build-id",
    header: "Build-id",
    value: of => of.build_id_gnu,
    cell: of => <code title={of.build_id_gnu}>{of.build_id_gnu.slice(0, 12)}</code>,
  },
  { id: "compiler", header: "Compiler", value: of => of.compiler },
  {
    id: "duration",
    header: "Duration",
    value: of => of.duration_s,
    text: of =>
      of.failure ? "failed" : of.reused || of.duration_s === null ? "reused" : roughDuration(of.duration_s),
  },
];

function Warnings({ build }: { build: BuildView }) {
  if (build.new_warnings.length === 0) return null;
  return (
    <div>
      <h3>{count(build.new_warnings.length, "new compiler warning")}</h3>
      <ul className={classes.small}>
        {build.new_warnings.map(each => (
          <li key={`${each.where} ${each.text}`}>
            <code>{oneLine(each.where)}</code> {oneLine(each.text)} {oneLine(each.option ?? "")}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Checkpatch({ report }: { report: Report }) {
  const { checkpatch: found, checkpatch_skipped: skipped } = report.submission.apply;
  return (
    <div>
      <h3>checkpatch (from the base tree)</h3>
      {skipped && (
        <p className={classes.small}>
          {found.length > 0 ? "Incomplete" : "Not run"}, because {oneLine(skipped)}.
        </p>
      )}
      {found.length === 0 ? (
        !skipped && <p className={classes.small}>No findings.</p>
      ) : (
        <ul className={classes.small}>
          {found.map(each => (
            <li key={`${each.where} ${each.text}`}>
              <strong>{each.severity}</strong> {oneLine(each.text)}{" "}
              {each.where && <code>{oneLine(each.where)}</code>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

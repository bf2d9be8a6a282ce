/** The kernels that were compared: source, builds, configuration, how to build them again. */
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { BuildView, Report } from "@/api/types";
import { count } from "@/lib/numbers";
import { rough } from "@/lib/time";
import { clean, oneLine } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { type Column, DataTable } from "@/parts/DataTable";
import { FailureCard } from "@/parts/FailureCard";
import { Section } from "@/parts/Page";
import { Scroll } from "@/parts/Scroll";
import classes from "./Kernels.module.css";

export const Kernels = memo(function Kernels({ report }: { report: Report }) {
  const { submission, config_diff, config_sha256 } = report;
  const { apply } = submission;
  const reproducers = [...Map.groupBy(submission.builds, build => build.reproducer)].filter(([text]) => text);
  const study = submission.request.series === null;
  return (
    <Section id="kernels" title="Kernels">
      {apply.base_commit && (
        <p>
          Base: {submission.tree} <code>{apply.base_commit}</code>
          {apply.release && ` (${apply.release})`}
        </p>
      )}
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
          build.failure && (
            <FailureCard
              key={build.id}
              failure={build.failure}
              what={`build of the ${build.arm ?? "kernel"}`}
              told={submission.failure}
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
      <div>
        <h3>Configuration</h3>
        {config_sha256 && (
          <p className={classes.small}>
            sha256 <code>{config_sha256}</code>
          </p>
        )}
        {config_diff.length > 0 ? (
          <>
            <p className={classes.small}>Options that differ, baseline to candidate:</p>
            <Scroll name="Options that differ" className={classes.text}>
              <pre>{clean(config_diff.join("\n"))}</pre>
            </Scroll>
          </>
        ) : (
          <p className={classes.small}>
            {study ? "One kernel: there is nothing to differ." : "The same options in both kernels."}
          </p>
        )}
      </div>
      {!study && <Checkpatch report={report} />}
      {reproducers.map(([text, builds]) => (
        <div key={text}>
          <div className={classes.head}>
            <h3>Build {builds.length > 1 ? "either kernel" : "it"} yourself</h3>
            <CopyButton text={text} name="Copy the build command" />
          </div>
          <p className={classes.small}>
            With the source in linux/, {study ? "" : "the series applied there for the candidate, "}its
            configuration beside it (
            <code>
              wqlab logs {submission.id} --build {builds[0]?.id} --config -o config
            </code>
            ), tuxmake, and the compiler above:
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
  { id: "arm", header: "kernel", value: of => of.arm ?? "kernel", rowHeader: true },
  { id: "release", header: "release", value: of => of.release },
  { id: "recipe", header: "recipe", value: of => `${of.recipe}, ${of.arch}` },
  {
    id: "tree",
    header: "source tree",
    value: of => of.tree_oid,
    cell: of => <code title={of.tree_oid}>{of.tree_oid.slice(0, 12)}</code>,
  },
  {
    id: "build-id",
    header: "build-id",
    value: of => of.build_id_gnu,
    cell: of => <code title={of.build_id_gnu}>{of.build_id_gnu.slice(0, 12)}</code>,
  },
  { id: "compiler", header: "compiler", value: of => of.compiler },
  {
    id: "duration",
    header: "took",
    value: of => of.duration_s,
    text: of =>
      of.failure ? "does not build" : of.reused || of.duration_s === null ? "reused" : rough(of.duration_s),
  },
];

function Warnings({ build }: { build: BuildView }) {
  if (build.new_warnings.length === 0) return null;
  return (
    <div>
      <h3>{count(build.new_warnings.length, "compiler warning")} that the baseline does not have</h3>
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
  const found = report.submission.apply.checkpatch;
  return (
    <div>
      <h3>checkpatch, the base tree's</h3>
      {found.length === 0 ? (
        <p className={classes.small}>Clean.</p>
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

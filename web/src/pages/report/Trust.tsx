import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Report } from "@/api/types";
import { isInstrumented } from "@/lib/instrumented";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { MATCH_HASH } from "./OnThisPage";
import classes from "./Trust.module.css";

/** One line of what a reader checks before believing a figure. */
export function Trust({ report }: { report: Report }) {
  const measured = report.targets.filter(target => target.blocks_completed > 0);
  if (measured.length === 0) return null;
  const sum = (of: (target: (typeof measured)[number]) => number) =>
    measured.reduce((all, target) => all + of(target), 0);
  const ofKernels = report.submission.request.series !== null;
  const kept = sum(target => target.blocks_completed);
  const discarded = sum(target =>
    Object.values(target.discarded).reduce((all, many) => all + many, target.discarded_by_lab),
  );
  const differences = sum(target => target.environment?.differences.length ?? 0);
  const records = measured.flatMap(target => target.canaries ?? []);
  const record = records[0];
  return (
    <section className={classes.trust} aria-label="Can I trust it?">
      <strong>Can I trust it?</strong>
      {ofKernels && !measured.some(isInstrumented) && <Check ok>same device, boots alternate</Check>}
      <Check ok={discarded === 0}>
        {count(kept, "block")} kept{discarded > 0 && `, ${discarded} discarded and repeated`}
      </Check>
      <Check ok>build-id checked in each boot</Check>
      {report.config_compared && (
        <Check ok={report.config_diff.length === 0}>
          {report.config_diff.length === 0
            ? "same configuration"
            : `${count(report.config_diff.length, "option")} differ`}
        </Check>
      )}
      {differences > 0 && <Check ok={false}>{count(differences, "difference")} of environments</Check>}
      {measured.some(target => target.emulated) && (
        <Check ok={false}>
          {measured.every(target => target.emulated) ? "emulated" : "some devices are emulated"}
        </Check>
      )}
      {record && (
        <span title={oneLine(record.line)}>
          <Link
            to="."
            search
            hash={`run-${measured.find(target => target.canaries?.includes(record))?.run_id}`}
            activeOptions={MATCH_HASH}
          >
            how often this device is wrong
          </Link>
        </span>
      )}
      <a href="/docs/replay/">replay it yourself</a>
    </section>
  );
}

function Check({ ok, children }: { ok: boolean; children: ReactNode }) {
  return (
    <span>
      <span className={ok ? classes.ok : classes.warn} aria-hidden="true">
        {ok ? "✓" : "⚠"}
      </span>{" "}
      {children}
    </span>
  );
}

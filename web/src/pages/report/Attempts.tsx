import { memo } from "react";
import type { AttemptView, Report } from "@/api/types";
import { humanize } from "@/lib/words";
import { FailureCard } from "@/parts/FailureCard";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { otherAttempts } from "./failures";

/** The failed attempts, each with the cause of its failure; those of the submission's failure are stated with it. */
export const Attempts = memo(function Attempts({ report }: { report: Report }) {
  const { failure } = report.submission;
  const attempts = otherAttempts(report);
  if (failure && attempts.length === 0) return null;
  const kinds = [...Map.groupBy(attempts, attempt => attempt.failure.kind)];
  return (
    <Section
      id="attempts"
      title={failure ? "Other failed attempts" : "Failed attempts"}
      lead={
        attempts.length === 0
          ? "No failed attempts."
          : `${attempts.length} in total: ${kinds.map(([kind, of]) => `${kind} ${of.length}`).join(", ")}.`
      }
    >
      {attempts.map(attempt => (
        <FailureCard
          key={`${attempt.what} ${attempt.run_id} ${attempt.build_id} ${attempt.block} ${attempt.arm} ${attempt.attempt} ${attempt.at}`}
          failure={attempt.failure}
          what={
            <>
              {attemptName(attempt)}
              {attempt.at && (
                <>
                  , <RelativeTime at={attempt.at} />
                </>
              )}
            </>
          }
        />
      ))}
    </Section>
  );
});

/**
 * Name of an attempt: `xfs-fsync on xeon-1, block 1, candidate, attempt 2`. Attempts without a block already count
 * from one.
 */
export function attemptName(attempt: AttemptView): string {
  if (attempt.what !== "run") {
    const what = attempt.build_id === null ? humanize(attempt.what) : `build ${attempt.build_id}`;
    return `${what}${attempt.device ? ` by ${attempt.device}` : ""}, attempt ${attempt.attempt}`;
  }
  const of = `${attempt.plan} on ${attempt.device || attempt.device_type}`;
  if (attempt.block === null) return `${of}, attempt ${attempt.attempt}`;
  return [of, `block ${attempt.block + 1}`, attempt.arm, `attempt ${attempt.attempt + 1}`]
    .filter(Boolean)
    .join(", ");
}

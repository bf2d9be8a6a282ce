import { memo } from "react";
import type { AttemptView, Report } from "@/api/types";
import { spoken, WHOSE } from "@/lib/words";
import { FailureCard } from "@/parts/FailureCard";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";

/** Everything that went wrong on the way, none left out, each with whose it is. */
export const Attempts = memo(function Attempts({ report: { attempts, submission } }: { report: Report }) {
  const kinds = [...Map.groupBy(attempts, attempt => attempt.failure.kind)];
  return (
    <Section
      id="attempts"
      title="Attempts that failed"
      lead={
        attempts.length === 0
          ? "None: every attempt went through."
          : `${attempts.length} in all, none left out: ${kinds.map(([kind, of]) => `${WHOSE[kind].word} ${of.length}`).join(", ")}.`
      }
    >
      {attempts.map(attempt => (
        <FailureCard
          key={`${attempt.what} ${attempt.run_id} ${attempt.build_id} ${attempt.block} ${attempt.arm} ${attempt.attempt} ${attempt.at}`}
          failure={attempt.failure}
          told={submission.failure}
          what={
            <>
              {where(attempt)}
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

/** `xfs-fsync on xeon-1, block 1, candidate, attempt 2`; people count from one, and so do devices' attempts. */
export function where(attempt: AttemptView): string {
  if (attempt.what !== "run") {
    const what = attempt.build_id === null ? spoken(attempt.what) : `build ${attempt.build_id}`;
    return `${what}${attempt.device ? ` by ${attempt.device}` : ""}, attempt ${attempt.attempt}`;
  }
  const of = `${attempt.plan} on ${attempt.device || attempt.device_type}`;
  if (attempt.block === null) return `${of}, attempt ${attempt.attempt}`;
  return [of, `block ${attempt.block + 1}`, attempt.arm, `attempt ${attempt.attempt + 1}`]
    .filter(Boolean)
    .join(", ");
}

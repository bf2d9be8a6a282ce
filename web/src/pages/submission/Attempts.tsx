import { Link } from "@tanstack/react-router";
import type { AttemptView, SubmissionSteps } from "@/api/types";
import { count } from "@/lib/numbers";
import { FailureCard } from "@/parts/FailureCard";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./panels.module.css";
import { allRuns, toBoot, toBuild, toRun, toSeries } from "./selection";
import { attemptName } from "./steps";

/** All failed attempts, retried or not, latest first; nothing if there are none. */
export function Attempts({ steps }: { steps: SubmissionSteps }) {
  const { attempts } = steps;
  if (attempts.length === 0) return null;
  return (
    <Section
      id="failures"
      title="Failed attempts"
      lead={`${count(attempts.length, "failed attempt")}, latest first, including those that were retried successfully.`}
    >
      <ol className={classes.attempts}>
        {attempts.toReversed().map((attempt, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: counted from the oldest, which never changes
          <li key={attempts.length - at}>
            <FailureCard
              failure={attempt.failure}
              what={
                <>
                  {attemptName(attempt)}, <RelativeTime at={attempt.at} absent="unknown time" />
                </>
              }
              actions={<Source attempt={attempt} steps={steps} />}
              mainFailure={steps.submission.failure}
            />
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Source({ attempt, steps }: { attempt: AttemptView; steps: SubmissionSteps }) {
  const { to, word } = sourceOf(attempt, steps);
  return (
    <Link
      to="/submissions/$id"
      params={params => params as { id: number }}
      search={before => ({ ...before, ...to })}
    >
      {word}
    </Link>
  );
}

/** Link to the failed step: the console of the failed boot, or else of the newest boot of its block. */
function sourceOf(attempt: AttemptView, steps: SubmissionSteps) {
  if (attempt.what === "apply") return { to: toSeries(), word: "Series" };
  if (attempt.build_id !== null) return { to: toBuild(attempt.build_id), word: "Build log" };
  const run = allRuns(steps).find(each => each.id === attempt.run_id);
  const boots =
    run?.boots.filter(each => each.block === attempt.block && each.attempt === attempt.attempt) ?? [];
  const boot = boots.find(each => each.arm === attempt.arm) ?? boots.at(-1);
  if (run && boot) return { to: toBoot(run.id, boot.id), word: "Console" };
  return { to: toRun(attempt.run_id ?? 0), word: "Run" };
}

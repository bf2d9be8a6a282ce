import { Link } from "@tanstack/react-router";
import type { AttemptView, SubmissionSteps } from "@/api/types";
import { count } from "@/lib/numbers";
import { FailureCard } from "@/parts/FailureCard";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./panels.module.css";
import { toBoot, toBuild, toRun, toSeries } from "./selection";
import { attemptWhere } from "./steps";

/** Everything that went wrong on the way, the latest first; tried again or not, none left out. */
export function Attempts({ steps }: { steps: SubmissionSteps }) {
  const { attempts } = steps;
  return (
    <Section
      id="failures"
      title="What went wrong on the way"
      lead={
        attempts.length > 0
          ? `${count(attempts.length, "failed attempt")}, also what a later one made up for; the latest first.`
          : undefined
      }
    >
      {attempts.length === 0 ? (
        <p className="muted">Nothing so far: every attempt went through.</p>
      ) : (
        <ol className={classes.attempts}>
          {attempts.toReversed().map((attempt, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: counted from the oldest, which never changes
            <li key={attempts.length - at}>
              <FailureCard
                failure={attempt.failure}
                what={
                  <>
                    {attemptWhere(attempt)}, <RelativeTime at={attempt.at} absent="some time" />
                  </>
                }
                actions={<Source attempt={attempt} steps={steps} />}
                told={steps.submission.failure}
              />
            </li>
          ))}
        </ol>
      )}
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

/** Where to read on: the console of the boot that failed, else the newest of its block. */
function sourceOf(attempt: AttemptView, steps: SubmissionSteps) {
  if (attempt.what === "apply") return { to: toSeries(), word: "Series" };
  if (attempt.build_id !== null) return { to: toBuild(attempt.build_id), word: "Build log" };
  const run = steps.runs.find(each => each.id === attempt.run_id);
  const boots =
    run?.boots.filter(each => each.block === attempt.block && each.attempt === attempt.attempt) ?? [];
  const boot = boots.find(each => each.arm === attempt.arm) ?? boots.at(-1);
  if (run && boot) return { to: toBoot(run.id, boot.id), word: "Console of this boot" };
  return { to: toRun(attempt.run_id ?? 0), word: "Run" };
}

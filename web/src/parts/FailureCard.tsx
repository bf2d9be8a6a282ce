import type { ReactNode } from "react";
import type { Failure } from "@/api/types";
import { clean, FAILURE_KINDS, isSameFailure, oneLine } from "@/lib/words";
import classes from "./FailureCard.module.css";
import { Scroll } from "./Scroll";

interface FailureCardProps {
  failure: Failure;
  /** The part that failed: `build of the candidate`, `boot 3B, attempt 2`. */
  what?: ReactNode;
  /** Places where it occurred. */
  where?: readonly string[];
  /** Links or buttons: the log, the console line, a retry. */
  actions?: ReactNode;
  /** The failure shown in `<MainFailure>`. If this is the same failure, only a link to it is shown. */
  mainFailure?: Failure | null;
}

/** A failure: kind, summary, excerpt and advice. Its texts come from submitted code and devices and are cleaned. */
export function FailureCard({ failure, what, where = [], actions, mainFailure = null }: FailureCardProps) {
  const { cause, tone, advice } = FAILURE_KINDS[failure.kind];
  if (isSameFailure(failure, mainFailure)) {
    return (
      <div className={classes.repeated} data-tone={tone}>
        <p>
          <strong>{failure.kind}</strong>
          <span className="muted">{what && <> · {what}</>} · </span>
          <FailureLink where="above" />
        </p>
        {actions && <div className="row no-print">{actions}</div>}
      </div>
    );
  }
  return (
    // A group, not a region: a failure can appear more than once, and landmarks need unique names.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form controls
    <div
      role="group"
      className={classes.card}
      data-tone={tone}
      aria-label={`Failure: ${oneLine(failure.summary)}`}
    >
      <p className={classes.kind}>
        <strong>{failure.kind}</strong>
        <span className="muted">
          {" "}
          · {cause}
          {what && <> · {what}</>}
        </span>
      </p>
      <p className={classes.summary}>{oneLine(failure.summary)}</p>
      {where.length > 0 && <p className="muted">Where: {where.map(oneLine).join("; ")}</p>}
      {failure.excerpt && (
        <Scroll name="Excerpt" className={classes.excerpt}>
          <pre>{clean(failure.excerpt).trimEnd()}</pre>
        </Scroll>
      )}
      <p>
        <strong>What to do: </strong>
        {oneLine(failure.advice) || advice}
      </p>
      {actions && <div className="row no-print">{actions}</div>}
    </div>
  );
}

const MAIN_FAILURE_ID = "failure";

/** The failure of the whole submission in full; the target of `<FailureLink>`. */
export function MainFailure({ failure, what, where }: Pick<FailureCardProps, "failure" | "what" | "where">) {
  return (
    <div id={MAIN_FAILURE_ID} className={classes.main}>
      <FailureCard failure={failure} what={what} where={where} />
    </div>
  );
}

/** Link to the main failure, for other parts that failed for the same reason. */
export function FailureLink({ where }: { where: "above" | "below" }) {
  return (
    <a href={`#${MAIN_FAILURE_ID}`} className="nowrap">
      the failure {where}
    </a>
  );
}

/** A sentence; where it ends with the summary of the main failure, a link replaces the summary. */
export function FailureSentence({ text, mainFailure, where }: FailureSentenceProps) {
  if (!mainFailure?.summary || !text.endsWith(mainFailure.summary)) return oneLine(text);
  return (
    <>
      {oneLine(text.slice(0, -mainFailure.summary.length))} <FailureLink where={where} />
    </>
  );
}

interface FailureSentenceProps {
  text: string;
  mainFailure: Failure | null;
  where: "above" | "below";
}

import type { ReactNode } from "react";
import type { Failure } from "@/api/types";
import { clean, oneLine, WHOSE } from "@/lib/words";
import classes from "./FailureCard.module.css";
import { Scroll } from "./Scroll";

interface FailureCardProps {
  failure: Failure;
  /** What it happened to: `build of the candidate`, `boot 3B, attempt 2`. */
  what?: ReactNode;
  /** Links or buttons: the log, the console line, a retry. */
  actions?: ReactNode;
}

/** A failure as kind, sentence, excerpt and what to do. Its texts come from submitted code and boards: shown as data. */
export function FailureCard({ failure, what, actions }: FailureCardProps) {
  const { word, whose, tone, advice } = WHOSE[failure.kind];
  return (
    // A group and no region: the same failure comes more than once, and a page's landmarks have different names.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form's controls
    <div
      role="group"
      className={classes.card}
      data-tone={tone}
      aria-label={`Failure: ${oneLine(failure.summary)}`}
    >
      <p className={classes.kind}>
        <strong>{word}</strong>
        <span className="muted">
          {" "}
          · {whose}
          {what && <> · {what}</>}
        </span>
      </p>
      <p className={classes.summary}>{oneLine(failure.summary)}</p>
      {failure.excerpt && (
        <Scroll name="Excerpt" className={classes.excerpt}>
          <pre>{clean(failure.excerpt)}</pre>
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

import type { ReactNode } from "react";
import type { Failure } from "@/api/types";
import { clean, isTold, oneLine, WHOSE } from "@/lib/words";
import classes from "./FailureCard.module.css";
import { Scroll } from "./Scroll";

interface FailureCardProps {
  failure: Failure;
  /** What it happened to: `build of the candidate`, `boot 3B, attempt 2`. */
  what?: ReactNode;
  /** Links or buttons: the log, the console line, a retry. */
  actions?: ReactNode;
  /** The failure that the page tells above, in `<ToldFailure>`: the same one is then only named, and leads there. */
  told?: Failure | null;
}

/** A failure as kind, sentence, excerpt and what to do. Its texts come from submitted code and devices: shown as data. */
export function FailureCard({ failure, what, actions, told = null }: FailureCardProps) {
  const { word, whose, tone, advice } = WHOSE[failure.kind];
  if (isTold(failure, told)) {
    return (
      <div className={classes.again} data-tone={tone}>
        <p>
          <strong>{word}</strong>
          <span className="muted">{what && <> · {what}</>} · </span>
          <TheFailure where="above" />
        </p>
        {actions && <div className="row no-print">{actions}</div>}
      </div>
    );
  }
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

const TOLD = "failure";

/** Why the whole submission failed, once and in full, where `<TheFailure>` leads. */
export function ToldFailure({ failure, what }: Pick<FailureCardProps, "failure" | "what">) {
  return (
    <div id={TOLD} className={classes.told}>
      <FailureCard failure={failure} what={what} />
    </div>
  );
}

/** In a place of the same page that failed for the same reason. */
export function TheFailure({ where }: { where: "above" | "below" }) {
  return (
    <a href={`#${TOLD}`} className="nowrap">
      the failure {where}
    </a>
  );
}

/** A sentence that ends with a failure's own, which the page tells already: it ends with a link instead. */
export function SaidOnce({ text, told, where }: SaidOnceProps) {
  if (!told?.summary || !text.endsWith(told.summary)) return oneLine(text);
  return (
    <>
      {oneLine(text.slice(0, -told.summary.length))} <TheFailure where={where} />
    </>
  );
}

interface SaidOnceProps {
  text: string;
  told: Failure | null;
  where: "above" | "below";
}

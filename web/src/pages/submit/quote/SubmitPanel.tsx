import { Link, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { ApiError } from "@/api/problem";
import { useSession } from "@/api/session";
import type { SubmissionRequest } from "@/api/types";
import { Button } from "@/kit";
import { count } from "@/lib/numbers";
import { CommandBlock } from "@/parts/CommandBlock";
import type { Submission } from "../draft/useSubmit";
import { commandsOf } from "./commands";
import { ErrorSummary } from "./ErrorSummary";
import { QuoteSummary } from "./QuotePanel";
import classes from "./SubmitPanel.module.css";
import type { LiveQuote } from "./useQuote";

interface SubmitPanelProps {
  quote: LiveQuote;
  request: SubmissionRequest;
  submission: Submission;
  /** Number of times Submit was pressed. */
  presses: number;
  /** Number of targets. */
  targets: number;
}

/** Bar at the foot of the window: totals of the quote, errors, and the button, whatever the form has above it. */
export function SubmitPanel({ quote, request, submission, presses, targets }: SubmitPanelProps) {
  return (
    <aside className={classes.bar} aria-label="Quote and submit">
      <div className={classes.errors}>
        <ErrorSummary presses={presses} />
        {submission.error && !submission.fieldErrors && <SubmitError error={submission.error} />}
      </div>
      <div className={classes.order}>
        <QuoteSummary live={quote} request={request} />
        <SubmitButton pending={submission.pending} targets={targets} />
      </div>
    </aside>
  );
}

interface SameCommandProps {
  request: SubmissionRequest;
  /** File name of the mbox. */
  file: string;
  /** True if no required input is missing. */
  complete: boolean;
}

/** The commands that submit the same, for a CI. */
export function SameCommand({ request, file, complete }: SameCommandProps) {
  return (
    <details className={classes.command}>
      <summary>
        The same with <code>wqlab submit</code> or <code>curl</code>
      </summary>
      {complete ? (
        <>
          <CommandBlock label="Command" commands={commandsOf(request, { lab: location.origin, file })} />
          <p className="fine">
            Both commands read an API token from <code>WQLAB_TOKEN</code>;{" "}
            <Link to="/account">create a token</Link>. <code>wqlab</code> waits for the result and exits with
            status 1 for a regression.
            {request.series?.mbox && (
              <>
                {" "}
                Both read the mbox from a file; the <code>curl</code> command needs <code>jq</code>.
              </>
            )}
          </p>
        </>
      ) : (
        <p className="fine">Complete the form to see the commands.</p>
      )}
    </details>
  );
}

function SubmitButton({ pending, targets }: { pending: boolean; targets: number }) {
  const session = useSession();
  const navigate = useNavigate();
  const href = useRouterState({ select: state => state.location.href });
  const many = targets > 1 ? ` ${count(targets, "target")}` : "";
  if (session && !session.user) {
    return (
      <Button size="md" onClick={() => void navigate({ to: "/sign-in", search: { next: href } })}>
        Sign in to submit{many}
      </Button>
    );
  }
  const may = session?.user?.scopes.includes("submit") ?? true;
  return (
    <div className={classes.button}>
      <Button type="submit" size="md" loading={pending} disabled={!may}>
        Submit{many}
      </Button>
      {!may && (
        <p className="fine">
          Your role ({session?.user?.role}) cannot submit. Ask an administrator of this lab to change it.
        </p>
      )}
    </div>
  );
}

/** Error that belongs to no field: signed out, rate limited or server unavailable. */
function SubmitError({ error }: { error: Error }) {
  const href = useRouterState({ select: state => state.location.href });
  const box = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Error>();
  useEffect(() => {
    if (shown === error) return;
    setShown(error);
    box.current?.focus();
  }, [error, shown]);
  return (
    <div className={classes.refusal} role="alert" tabIndex={-1} ref={box}>
      <p>
        <strong>Not submitted.</strong> {error.message}
      </p>
      {error instanceof ApiError && error.signInNeeded ? (
        <p>
          <Link to="/sign-in" search={{ next: href }}>
            Sign in
          </Link>{" "}
          to continue. Your input is kept.
        </p>
      ) : (
        <p>Your input is kept. It is safe to try again; this does not create a second submission.</p>
      )}
    </div>
  );
}

import { Link, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { ApiError } from "@/api/problem";
import { useSession } from "@/api/session";
import type { SubmissionRequest } from "@/api/types";
import { Button } from "@/kit";
import { count } from "@/lib/numbers";
import { CommandBlock } from "@/parts/CommandBlock";
import type { Pair } from "../draft/draft";
import type { Sending } from "../draft/useSend";
import { commandsOf } from "./commands";
import { Mistakes } from "./Mistakes";
import classes from "./Order.module.css";
import { QuoteSums, QuoteTargets } from "./QuotePanel";
import type { LiveQuote } from "./useQuote";

interface OrderProps {
  quote: LiveQuote;
  request: SubmissionRequest;
  send: Sending;
  /** Name of the mbox's file. */
  file: string;
  /** Nothing is missing that the form knows of. */
  complete: boolean;
  /** How often the button was pressed. */
  presses: number;
  targets: readonly Pair[];
}

/** Beside the form: what it would cost, the button, and the same as a command. */
export function Order({ quote, request, send, file, complete, presses, targets }: OrderProps) {
  return (
    <aside className={classes.order} aria-label="Quote and submit">
      <QuoteSums live={quote} request={request} />
      <Mistakes presses={presses} />
      {send.error && !send.mistakes && <Refusal error={send.error} />}
      <SubmitButton pending={send.pending} targets={targets} />
      <QuoteTargets live={quote} request={request} />
      <div className={classes.command}>
        <h2>The same for CI</h2>
        {complete ? (
          <>
            <CommandBlock label="Command" commands={commandsOf(request, { lab: location.origin, file })} />
            <p className={classes.fine}>
              Both read an API token from <code>WQLAB_TOKEN</code>; <Link to="/account">make one</Link>.{" "}
              <code>wqlab</code> waits, and exits with 1 for a regression.
              {request.series?.mbox && (
                <>
                  {" "}
                  Both read the mbox from a file; the second needs <code>jq</code>.
                </>
              )}
            </p>
          </>
        ) : (
          <p className={classes.fine}>
            Once the form is filled in, it stands here as a <code>wqlab</code> and as a <code>curl</code>{" "}
            command.
          </p>
        )}
      </div>
    </aside>
  );
}

function SubmitButton({ pending, targets }: { pending: boolean; targets: readonly Pair[] }) {
  const session = useSession();
  const navigate = useNavigate();
  const href = useRouterState({ select: state => state.location.href });
  const many = targets.length > 1 ? ` ${count(targets.length, "target")}` : "";
  if (session && !session.user) {
    return (
      <Button size="md" fullWidth onClick={() => void navigate({ to: "/sign-in", search: { next: href } })}>
        Sign in to submit{many}
      </Button>
    );
  }
  const may = session?.user?.scopes.includes("submit") ?? true;
  return (
    <>
      <Button type="submit" size="md" fullWidth loading={pending} disabled={!may}>
        Submit{many}
      </Button>
      {!may && (
        <p className={classes.fine}>
          A {session?.user?.role} may look, not submit; an administrator of this lab can change that. The
          command below works with a token that may.
        </p>
      )}
    </>
  );
}

/** What is about no field: not signed in any more, too fast, the lab is away. */
function Refusal({ error }: { error: Error }) {
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
          </Link>
          ; the form stays as it is.
        </p>
      ) : (
        <p>Nothing that you filled in is lost. Pressing again makes no second submission.</p>
      )}
    </div>
  );
}

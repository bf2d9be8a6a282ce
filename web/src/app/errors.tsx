/** What stands in a page's place when it cannot be shown: still loading, gone, refused, unreachable, broken. */
import { useQueryErrorResetBoundary } from "@tanstack/react-query";
import {
  type AsyncRouteComponent,
  type ErrorComponentProps,
  Link,
  useRouter,
  useRouterState,
} from "@tanstack/react-router";
import { useEffect } from "react";
import { whenRegained } from "@/api/connection";
import { ApiError, Unreachable } from "@/api/problem";
import { Page } from "@/parts/Page";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./errors.module.css";

export function Pending() {
  return (
    <div className="stack" aria-busy="true">
      <p className="hidden-visually">Loading</p>
      <Skeleton width="18rem" height="1.6rem" />
      <Skeleton lines={2} />
      <Skeleton lines={8} height="1.5rem" />
    </div>
  );
}

export function NotFound() {
  const path = useRouterState({ select: state => state.location.pathname });
  return (
    <Page
      title="Not found"
      lead={
        <>
          There is nothing at <code>{path}</code>.
        </>
      }
    >
      <p>
        A submission is at <code>/submissions/ID</code>, its report at <code>/r/ID</code>.{" "}
        <Link to="/submissions">Search the submissions</Link> or go to the <Link to="/">start</Link>.
      </p>
    </Page>
  );
}

export function RouteError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const queries = useQueryErrorResetBoundary();
  const again = async () => {
    // The page's code, where that is what was missing; the router itself asks for it once.
    await Promise.all(
      router.state.matches.map(match => preloadOf(router.routesById[match.routeId].options.component)),
    );
    queries.reset();
    reset();
    await router.invalidate();
  };
  useEffect(() => (error instanceof Unreachable ? whenRegained(() => void again()) : undefined));

  if (error instanceof ApiError) {
    if (error.status === 404) return <Gone error={error} />;
    if (error.signInNeeded) return <SignInFirst />;
    return (
      <Page title={error.status === 403 ? "Not allowed" : "The lab refused this"} lead={error.message}>
        <Again again={again} />
      </Page>
    );
  }
  if (error instanceof Unreachable) {
    return (
      <Page title="The lab does not answer" lead="This page shows itself as soon as it does.">
        <Again again={again} />
      </Page>
    );
  }
  return (
    <Page
      title="This page broke"
      lead="That is a fault of the page, not of what you asked for. Its text, for a bug report:"
    >
      <pre className={classes.trace}>
        {error instanceof Error ? (error.stack ?? error.message) : String(error)}
      </pre>
      <Again again={again} />
    </Page>
  );
}

function Gone({ error }: { error: ApiError }) {
  return (
    <Page title="Not found" lead={error.message}>
      <p>
        <Link to="/submissions">Search the submissions</Link>
      </p>
    </Page>
  );
}

function SignInFirst() {
  const href = useRouterState({ select: state => state.location.href });
  return (
    <Page title="Sign in to see this" lead="This lab is not open to the public.">
      <p>
        <Link to="/sign-in" search={{ next: href }}>
          Sign in
        </Link>
      </p>
    </Page>
  );
}

function preloadOf(component: unknown): Promise<unknown> | undefined {
  return (component as AsyncRouteComponent<object> | undefined)?.preload?.();
}

function Again({ again }: { again: () => Promise<void> }) {
  return (
    <button type="button" className={classes.again} onClick={() => void again()}>
      Try again
    </button>
  );
}

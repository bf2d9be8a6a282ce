/** Fallback pages: loading, not found, forbidden, unreachable and unexpected error. */
import {
  type AsyncRouteComponent,
  type ErrorComponentProps,
  Link,
  useRouter,
  useRouterState,
} from "@tanstack/react-router";
import { ApiError, Unreachable } from "@/api/problem";
import { useRetry } from "@/api/useRetry";
import { Page } from "@/parts/Page";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./errors.module.css";

/** Skeleton while a page loads. */
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

/** Page for an address without a route. */
export function NotFound() {
  const path = useRouterState({ select: state => state.location.pathname });
  return (
    <Page
      title="Not found"
      lead={
        <>
          There is no page at <code>{path}</code>.
        </>
      }
    >
      <p>
        Submissions are at <code>/submissions/ID</code>, reports at <code>/r/ID</code>.{" "}
        <Link to="/submissions">Search the submissions</Link> or go to the <Link to="/">home page</Link>.
      </p>
    </Page>
  );
}

/** Page for an error thrown while a route loads or renders. */
export function RouteError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const retry = useRetry(error, async () => {
    // Load the page's code again: the router itself tries only once.
    await Promise.all(
      router.state.matches.map(match => preloadOf(router.routesById[match.routeId].options.component)),
    );
    reset();
    await router.invalidate();
  });

  if (error instanceof ApiError) {
    if (error.status === 404) return <ResourceNotFound error={error} />;
    if (error.signInNeeded) return <SignInRequired />;
    return (
      <Page title={error.status === 403 ? "Forbidden" : "Request failed"} lead={error.message}>
        <RetryButton retry={retry} />
      </Page>
    );
  }
  if (error instanceof Unreachable) {
    return (
      <Page title="The lab is not responding" lead="This page loads as soon as the lab responds.">
        <RetryButton retry={retry} />
      </Page>
    );
  }
  return (
    <Page
      title="Something went wrong"
      lead="This is a bug in the web interface. Please include this text in a bug report:"
    >
      <pre className={classes.trace}>
        {error instanceof Error ? (error.stack ?? error.message) : String(error)}
      </pre>
      <RetryButton retry={retry} />
    </Page>
  );
}

function ResourceNotFound({ error }: { error: ApiError }) {
  return (
    <Page title="Not found" lead={error.message}>
      <p>
        <Link to="/submissions">Search the submissions</Link>
      </p>
    </Page>
  );
}

function SignInRequired() {
  const href = useRouterState({ select: state => state.location.href });
  return (
    <Page title="Sign in required" lead="This lab is not public.">
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

function RetryButton({ retry }: { retry: () => Promise<void> }) {
  return (
    <button type="button" className="button" data-look="primary" onClick={() => void retry()}>
      Try again
    </button>
  );
}

import { useQueryErrorResetBoundary } from "@tanstack/react-query";
import { CatchBoundary, type ErrorComponentProps } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { onReconnect } from "@/api/connection";
import { Unreachable } from "@/api/problem";

/** Show the message and a retry in place of children whose data could not be loaded. */
export function Boundary({ children }: { children: ReactNode }) {
  return (
    <CatchBoundary getResetKey={() => "section"} errorComponent={NotLoaded}>
      {children}
    </CatchBoundary>
  );
}

function NotLoaded({ error, reset }: ErrorComponentProps) {
  const queries = useQueryErrorResetBoundary();
  const retry = () => {
    queries.reset();
    reset();
  };
  useEffect(() => (error instanceof Unreachable ? onReconnect(retry) : undefined));
  return (
    <div className="row" role="alert">
      <span>Could not be loaded: {error instanceof Error ? error.message : String(error)}</span>
      <button type="button" className="button" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

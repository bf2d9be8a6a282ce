import { CatchBoundary, type ErrorComponentProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useRetry } from "@/api/useRetry";

/** Show the message and a retry in place of children whose data could not be loaded. */
export function Boundary({ children }: { children: ReactNode }) {
  return (
    <CatchBoundary getResetKey={() => "section"} errorComponent={NotLoaded}>
      {children}
    </CatchBoundary>
  );
}

function NotLoaded({ error, reset }: ErrorComponentProps) {
  const retry = useRetry(error, reset);
  return (
    <div className="row" role="alert">
      <span>Could not be loaded: {error instanceof Error ? error.message : String(error)}</span>
      <button type="button" className="button" onClick={() => void retry()}>
        Try again
      </button>
    </div>
  );
}

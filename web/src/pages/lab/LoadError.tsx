import { Button } from "@/kit";

interface LoadErrorProps {
  /** `The queue`. */
  what: string;
  error: Error;
  onRetry(): void;
}

/** Error for a part of a page that could not be loaded, with a retry button. */
export function LoadError({ what, error, onRetry }: LoadErrorProps) {
  return (
    <div className="row" role="alert">
      <span>
        {what} could not be loaded: {error.message}
      </span>
      <Button size="compact-sm" variant="default" onClick={onRetry}>
        Retry
      </Button>
    </div>
  );
}

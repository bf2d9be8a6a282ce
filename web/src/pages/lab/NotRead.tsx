import { Button } from "@/kit";

interface NotReadProps {
  /** `The queue`. */
  what: string;
  error: Error;
  again(): void;
}

/** A part of the page that could not be read, while the rest can. */
export function NotRead({ what, error, again }: NotReadProps) {
  return (
    <div className="row" role="alert">
      <span>
        {what} could not be read: {error.message}
      </span>
      <Button size="compact-sm" variant="default" onClick={again}>
        Try again
      </Button>
    </div>
  );
}

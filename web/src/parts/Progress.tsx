import type { ReactNode } from "react";
import { roughDuration } from "@/lib/time";
import classes from "./Progress.module.css";
import { useNow } from "./RelativeTime";

interface ProgressProps {
  done: number;
  /** 0 if unknown; then the bar is empty. */
  total: number;
  /** Plural noun of the counted items: `boots`. */
  noun: string;
  /** Expected finish time. */
  finishAt?: string | null;
  /** Current activity. */
  children?: ReactNode;
}

/** Progress bar with count, remaining time and current activity. Its height does not change with its content. */
export function Progress({ done, total, noun, finishAt, children }: ProgressProps) {
  const now = useNow(1000);
  const left = finishAt == null ? null : (new Date(finishAt).getTime() - now.getTime()) / 1000;
  const figures = total > 0 ? `${done} of ${total} ${noun}` : "";
  const eta = left === null ? "" : left > 0 ? `about ${roughDuration(left)} left` : "later than expected";
  return (
    <div className={classes.progress}>
      <progress
        className={classes.bar}
        max={total || 1}
        value={total > 0 ? Math.min(done, total) : 0}
        aria-label={figures || noun}
      />
      <p className={classes.words}>
        <span>{[figures, eta].filter(Boolean).join(", ") || "\u00a0"}</span>
        <span className="muted">{children}</span>
      </p>
    </div>
  );
}

import type { ReactNode } from "react";
import { rough } from "@/lib/time";
import classes from "./Progress.module.css";
import { useNow } from "./RelativeTime";

interface ProgressProps {
  done: number;
  /** 0: not known, and then no bar pretends to know. */
  total: number;
  /** What is counted: `boots`. */
  noun: string;
  /** When it is expected to end. */
  finishAt?: string | null;
  /** What is happening now, in words. */
  children?: ReactNode;
}

/** How far it is, how long still, what is going on. Takes the same room whatever it says. */
export function Progress({ done, total, noun, finishAt, children }: ProgressProps) {
  const now = useNow(1000);
  const left = finishAt == null ? null : (new Date(finishAt).getTime() - now.getTime()) / 1000;
  const figures = total > 0 ? `${done} of ${total} ${noun}` : "";
  const eta = left === null ? "" : left > 0 ? `about ${rough(left)} left` : "later than expected";
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

import type { Outcome } from "@/api/types";
import { stateOrOutcome, toneOf } from "@/lib/words";
import classes from "./StateBadge.module.css";

/** The state of something, or its outcome once it has finished. */
export function StateBadge({ state, outcome }: { state: string; outcome?: Outcome | null }) {
  const running =
    outcome == null &&
    !["finished", "waiting", "queued", "good", "suspect", "quarantined", "unknown"].includes(state);
  return (
    <span className={classes.badge} data-tone={toneOf(outcome ?? state)} data-running={running || undefined}>
      <span className={classes.dot} aria-hidden="true" />
      {stateOrOutcome({ state, outcome })}
    </span>
  );
}

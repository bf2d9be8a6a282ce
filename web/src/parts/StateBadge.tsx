import type { Outcome } from "@/api/types";
import { stateOrOutcome, toneOf } from "@/lib/words";
import classes from "./StateBadge.module.css";

/** States in which nothing happens at the moment. */
const AT_REST = new Set([
  ...["finished", "waiting", "queued", "good", "suspect", "quarantined"],
  ...["free", "not_checked_yet"],
  ...["waiting_for_review", "delivered", "given_up", "dropped", "not_measured"],
  ...["on", "off", "taken", "not_taken", "start", "measured", "skipped", "failed"],
  ...["new", "confirmed", "not_reproduced", "explained", "fixed"],
  ...["found", "range", "no_difference", "not_confirmed", "unusable", "repeated", "canceled"],
]);

/** The state of something, or its outcome once it has finished. */
export function StateBadge({ state, outcome }: { state: string; outcome?: Outcome | null }) {
  const running = outcome == null && !AT_REST.has(state);
  return (
    <span className={classes.badge} data-tone={toneOf(outcome ?? state)} data-running={running || undefined}>
      <span className={classes.dot} aria-hidden="true" />
      {stateOrOutcome({ state, outcome })}
    </span>
  );
}

import type { Outcome } from "@/api/types";
import { howItStands, toneOf } from "@/lib/words";
import classes from "./StateBadge.module.css";

/** Where something is, or how it ended once it has. */
export function StateBadge({ state, outcome }: { state: string; outcome?: Outcome | null }) {
  const running =
    outcome == null &&
    !["finished", "waiting", "queued", "good", "suspect", "quarantined", "unknown"].includes(state);
  return (
    <span className={classes.badge} data-tone={toneOf(outcome ?? state)} data-running={running || undefined}>
      <span className={classes.dot} aria-hidden="true" />
      {howItStands({ state, outcome })}
    </span>
  );
}

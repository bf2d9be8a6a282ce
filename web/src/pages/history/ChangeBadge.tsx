import type { HistoryShift } from "@/api/types";
import classes from "./history.module.css";
import { changeOf } from "./labels";

/** Whether a shift is to the worse or to the better, as sign, word and colour. */
export function ChangeBadge({ of }: { of: HistoryShift }) {
  const { sign, word, tone } = changeOf(of);
  return (
    <span className={classes.change} data-tone={tone}>
      <span className={classes.sign} aria-hidden="true">
        {sign}
      </span>
      {word}
    </span>
  );
}

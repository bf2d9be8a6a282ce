import { probe, useConnection } from "@/api/connection";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./OfflineBanner.module.css";

/** Laid over the page's lower edge, not into it: nothing moves when contact comes and goes. */
export function OfflineBanner() {
  const { lostAt } = useConnection();
  return (
    <div role="status">
      {lostAt !== null && (
        <div className={classes.banner}>
          <span>
            <strong>No contact with the lab</strong> since <RelativeTime at={lostAt} />. What you see is what
            was known then; the page goes on by itself when the lab answers.
          </span>
          <button type="button" className={classes.button} onClick={() => void probe()}>
            Try now
          </button>
        </div>
      )}
    </div>
  );
}

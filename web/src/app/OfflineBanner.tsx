import { probe, useConnection } from "@/api/connection";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./OfflineBanner.module.css";

/** Banner while the lab is not responding. Overlays the page's lower edge, so that the layout does not shift. */
export function OfflineBanner() {
  const { unreachableSince } = useConnection();
  return (
    <div role="status">
      {unreachableSince !== null && (
        <div className={classes.banner}>
          <span>
            <strong>Connection lost</strong> <RelativeTime at={unreachableSince} />. The data shown may be out
            of date. The page reconnects automatically.
          </span>
          <button type="button" className={classes.button} onClick={() => void probe()}>
            Retry now
          </button>
        </div>
      )}
    </div>
  );
}

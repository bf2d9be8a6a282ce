import { useSession } from "@/api/session";
import classes from "./Notice.module.css";

/** What the operator says at the top of every page. */
export function Notice() {
  const notice = useSession()?.notice;
  return notice ? (
    <p role="note" className={classes.notice}>
      {notice}
    </p>
  ) : null;
}

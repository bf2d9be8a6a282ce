import type { ReactNode } from "react";
import classes from "./EmptyState.module.css";

/** Placeholder for an empty list: reason and next action. */
export function EmptyState({
  title,
  children,
  action,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className={classes.empty}>
      <p className={classes.title}>{title}</p>
      {children && <div className="muted">{children}</div>}
      {action && <div className="row">{action}</div>}
    </div>
  );
}

import type { ReactNode } from "react";
import { type Command, CommandBlock } from "./CommandBlock";
import classes from "./Secret.module.css";

/** A secret that is shown only once: a token or a password. */
export function Secret({
  children,
  commands,
  onDone,
}: {
  children: ReactNode;
  commands: readonly Command[];
  onDone(): void;
}) {
  return (
    <div className={classes.secret}>
      <p role="status">{children}</p>
      <CommandBlock commands={commands} label="Secret" />
      <button type="button" className={classes.done} onClick={onDone}>
        Done
      </button>
    </div>
  );
}

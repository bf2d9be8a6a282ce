import type { ReactNode } from "react";
import { type Command, CommandBlock } from "./CommandBlock";
import classes from "./Secret.module.css";

/** Something that is shown once: a token, a password. */
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
        I have it, hide it
      </button>
    </div>
  );
}

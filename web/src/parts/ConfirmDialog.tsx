import { type ReactNode, useEffect, useId, useRef } from "react";
import classes from "./ConfirmDialog.module.css";

interface ConfirmDialogProps {
  open: boolean;
  title: string;
  /** What will happen, and what will not. */
  children: ReactNode;
  /** The button that does it: `Cancel submission 3`. */
  confirm: string;
  dangerous?: boolean;
  busy?: boolean;
  /** Why it did not work, said in the dialog. */
  error?: string | null;
  onConfirm(): void;
  onClose(): void;
}

/** Asks before something that cannot be taken back. Escape and a press beside it leave everything as it is. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const {
    open,
    title,
    children,
    confirm,
    dangerous = false,
    busy = false,
    error,
    onConfirm,
    onClose,
  } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the browser closes it with Escape; this is for the ground around it
    <dialog
      ref={dialog}
      className={classes.dialog}
      aria-labelledby={`${id}-title`}
      onClose={onClose}
      onClick={event => event.target === dialog.current && onClose()}
    >
      <div className={classes.inside}>
        <h2 id={`${id}-title`}>{title}</h2>
        <div className={classes.text}>{children}</div>
        {error && (
          <p className={classes.error} role="alert">
            {error}
          </p>
        )}
        <div className={classes.buttons}>
          <button type="button" className={classes.button} onClick={onClose}>
            Leave it
          </button>
          <button
            type="button"
            className={classes.button}
            data-tone={dangerous ? "bad" : "accent"}
            disabled={busy}
            onClick={onConfirm}
          >
            {confirm}
          </button>
        </div>
      </div>
    </dialog>
  );
}

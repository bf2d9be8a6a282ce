import { type ReactNode, useEffect, useId, useRef } from "react";
import classes from "./ConfirmDialog.module.css";

interface ConfirmDialogProps {
  open: boolean;
  title: string;
  /** Consequences of the action. */
  children: ReactNode;
  /** Label of the confirming button: `Cancel submission 3`. */
  confirm: string;
  dangerous?: boolean;
  busy?: boolean;
  /** Error message of a failed attempt. */
  error?: string | null;
  onConfirm(): void;
  onClose(): void;
}

/** Confirmation of an action that cannot be undone. Escape or a click outside closes it without acting. */
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
    // biome-ignore lint/a11y/useKeyWithClickEvents: the browser handles Escape; this handles clicks on the backdrop
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
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
          <button
            type="button"
            className="button"
            data-look={dangerous ? "danger" : "primary"}
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

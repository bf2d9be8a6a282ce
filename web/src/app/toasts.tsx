/** Toasts: short notifications. Form errors are shown at the form instead. */
import { useEffect, useSyncExternalStore } from "react";
import classes from "./toasts.module.css";

const DISPLAY_MS = 6000;

export interface Toast {
  text: string;
  tone?: "good" | "bad";
}

type ActiveToast = Toast & { id: number };

let shown: readonly ActiveToast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function update(next: readonly ActiveToast[]) {
  shown = next;
  for (const listener of listeners) listener();
}

/** Show a toast. Toasts with tone `bad` stay until they are closed. */
export function toast(toast: Toast): void {
  lastId += 1;
  update([...shown.slice(-3), { ...toast, id: lastId }]);
}

export function Toasts() {
  const toasts = useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
  return (
    <section className={`${classes.list} no-print`} aria-label="Notifications">
      <div role="status" aria-live="polite">
        {toasts.map(each => (
          <ToastItem key={each.id} toast={each} />
        ))}
      </div>
    </section>
  );
}

function ToastItem({ toast }: { toast: ActiveToast }) {
  const close = () => update(shown.filter(each => each.id !== toast.id));
  useEffect(() => {
    if (toast.tone === "bad") return;
    const timer = setTimeout(() => update(shown.filter(each => each.id !== toast.id)), DISPLAY_MS);
    return () => clearTimeout(timer);
  }, [toast]);
  return (
    <div className={classes.toast} data-tone={toast.tone ?? "good"}>
      <span>{toast.text}</span>
      <button type="button" className={classes.close} onClick={close} aria-label="Dismiss">
        ×
      </button>
    </div>
  );
}

/** Short notes about what just happened. Errors of a form belong beside the form, not here. */
import { useEffect, useSyncExternalStore } from "react";
import classes from "./toasts.module.css";

const SHOWN_MS = 6000;

export interface Toast {
  text: string;
  tone?: "good" | "bad";
}

type Shown = Toast & { id: number };

let shown: readonly Shown[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Shown[]) {
  shown = next;
  for (const listener of listeners) listener();
}

/** Shows a note. Bad ones stay until they are closed. */
export function toast(note: Toast): void {
  lastId += 1;
  set([...shown.slice(-3), { ...note, id: lastId }]);
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
    <section className={`${classes.place} no-print`} aria-label="Notes">
      <div role="status" aria-live="polite">
        {toasts.map(each => (
          <Note key={each.id} note={each} />
        ))}
      </div>
    </section>
  );
}

function Note({ note }: { note: Shown }) {
  const close = () => set(shown.filter(each => each.id !== note.id));
  useEffect(() => {
    if (note.tone === "bad") return;
    const timer = setTimeout(() => set(shown.filter(each => each.id !== note.id)), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [note]);
  return (
    <div className={classes.toast} data-tone={note.tone ?? "good"}>
      <span>{note.text}</span>
      <button type="button" className={classes.close} onClick={close} aria-label="Close this note">
        ×
      </button>
    </div>
  );
}

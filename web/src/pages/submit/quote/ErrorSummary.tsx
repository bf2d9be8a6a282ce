import { use, useEffect, useRef } from "react";
import { FieldErrorsContext, fieldId } from "../draft/FieldError";
import classes from "./SubmitPanel.module.css";

/** List of errors with links to their fields. Receives focus when Submit is pressed. */
export function ErrorSummary({ presses }: { presses: number }) {
  const errors = use(FieldErrorsContext);
  const box = useRef<HTMLDivElement>(null);
  const shown = presses > 0 && errors.size > 0;
  const focusedFor = useRef(0);
  // Focus once per press, immediately or after the server's response, but not for errors that appear during editing.
  useEffect(() => {
    if (!shown || focusedFor.current === presses) return;
    focusedFor.current = presses;
    box.current?.focus();
  }, [shown, presses]);
  if (!shown) return null;
  return (
    <div className={classes.refusal} role="alert" tabIndex={-1} ref={box}>
      <p>
        <strong>Fix the errors below to submit.</strong>
      </p>
      <ul>
        {[...errors].flatMap(([field, messages]) =>
          messages.map(detail => (
            <li key={`${field} ${detail}`}>
              {field === "" ? (
                detail
              ) : (
                <a
                  href={`#${fieldId(field)}`}
                  onClick={event => {
                    event.preventDefault();
                    goTo(field);
                  }}
                >
                  {detail}
                </a>
              )}
            </li>
          )),
        )}
      </ul>
    </div>
  );
}

/** Focus the field, or the first control of its group. */
function goTo(field: string) {
  const found = document.getElementById(fieldId(field));
  // Open enclosing disclosures.
  for (let details = found?.closest("details"); details; details = details.parentElement?.closest("details"))
    details.open = true;
  const control = found?.matches("input, select, textarea, button")
    ? found
    : found?.querySelector<HTMLElement>("input, select, textarea, button");
  control?.focus({ preventScroll: true });
  (control ?? found)?.scrollIntoView({ block: "center" });
}

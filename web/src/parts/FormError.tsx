import { useEffect, useRef } from "react";
import classes from "./FormError.module.css";

/** Error message of a rejected form, announced to screen readers and focused. Renders nothing without an error. */
export function FormError({ error }: { error: Error | null }) {
  const place = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (error) place.current?.focus();
  }, [error]);
  if (!error) return null;
  return (
    <p className={classes.error} role="alert" tabIndex={-1} ref={place}>
      {error.message}
    </p>
  );
}

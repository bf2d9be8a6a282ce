import { createContext, use } from "react";
import classes from "./FieldError.module.css";
import type { FieldErrors } from "./fieldErrors";

/** Errors by field. */
export const FieldErrorsContext = createContext<FieldErrors>(new Map());

/** Return the error text of a field; undefined without errors, as Mantine's `error` property expects. */
export function useFieldError(field: string): string | undefined {
  return use(FieldErrorsContext).get(field)?.join(" ");
}

/** Return the ID of a field's element, for links from the error summary. */
export const fieldId = (field: string) => `field-${field.replaceAll(/[^\w-]/g, "_")}`;

/** Error text for an input that cannot show one itself. */
export function FieldError({ field, id }: { field: string; id?: string }) {
  const error = useFieldError(field);
  return error ? (
    <p className={classes.error} id={id}>
      {error}
    </p>
  ) : null;
}

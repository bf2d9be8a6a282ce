import { createContext, use } from "react";
import classes from "./Fault.module.css";
import type { Faults } from "./faults";

/** What is wrong with which field. */
export const FaultsContext = createContext<Faults>(new Map());

/** The sentences for a field; undefined when there is nothing wrong, as Mantine's `error` wants it. */
export function useFault(field: string): string | undefined {
  const said = use(FaultsContext).get(field);
  return said?.join(" ");
}

/** The id of a field's element, for the list of mistakes to lead to. */
export const fieldId = (field: string) => `field-${field.replaceAll(/[^\w-]/g, "_")}`;

/** What is wrong with something that is no text field. */
export function Fault({ field, id }: { field: string; id?: string }) {
  const said = useFault(field);
  return said ? (
    <p className={classes.fault} id={id}>
      {said}
    </p>
  ) : null;
}

/** What narrows a table. Each part tells the page, and the page keeps it in its address. */
import type { ReactNode } from "react";
import { grouped } from "@/lib/numbers";
import classes from "./FilterBar.module.css";
import { useTyped } from "./useTyped";

export function FilterBar({ children }: { children: ReactNode }) {
  return <search className={`${classes.bar} no-print`}>{children}</search>;
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T | "";
  from: readonly T[];
  /** What an option is called, if not itself. */
  name?(option: T): string;
  onValue(value: T | ""): void;
}

/** One of several, or any. Not there where there is nothing to choose. */
export function Choice<T extends string>({ label, value, from, name = of => of, onValue }: ChoiceProps<T>) {
  if (from.length < 2 && value === "") return null;
  // What the address says is offered even when nothing has it.
  const options = value === "" || from.includes(value) ? from : [value, ...from];
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <select value={value} onChange={event => onValue(event.target.value as T | "")}>
        <option value="">any</option>
        {options.map(option => (
          <option key={option} value={option}>
            {name(option)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TicksProps<T extends string> {
  label: string;
  chosen: readonly T[];
  /** How many rows each would show, in the order they are offered. */
  counts: ReadonlyMap<T, number>;
  name(option: T): string;
  onChosen(chosen: T[]): void;
}

/** Several of several; none chosen means all. */
export function Ticks<T extends string>({ label, chosen, counts, name, onChosen }: TicksProps<T>) {
  return (
    <fieldset className={classes.ticks}>
      <legend>{label}</legend>
      {[...counts].map(([option, many]) => (
        <label key={option}>
          <input
            type="checkbox"
            checked={chosen.includes(option)}
            onChange={event =>
              onChosen(event.target.checked ? [...chosen, option] : chosen.filter(other => other !== option))
            }
          />
          {name(option)} <span className="muted">{grouped(many)}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface TypedProps {
  label: string;
  hint?: string;
  value: string;
  onValue(value: string): void;
}

/** Text that is looked for, once the typing pauses. */
export function Typed({ label, hint, value, onValue }: TypedProps) {
  const [typed, setTyped] = useTyped(value, onValue, text => text.trim());
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <input
        type="search"
        value={typed}
        placeholder={hint}
        onChange={event => setTyped(event.target.value)}
      />
    </label>
  );
}

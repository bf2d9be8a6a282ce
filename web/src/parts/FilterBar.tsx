/** Filters of a table. Values are controlled by the page, which keeps them in its URL. */
import type { ReactNode } from "react";
import { grouped } from "@/lib/numbers";
import classes from "./FilterBar.module.css";
import { useDebouncedText } from "./useDebouncedText";

const NARROW = "(max-width: 44rem)";

/** With `used`, the number of filters that are set, a narrow window shows the filters on request. */
export function FilterBar({ children, used }: { children: ReactNode; used?: number }) {
  const bar = <search className={`${classes.bar} no-print`}>{children}</search>;
  if (used === undefined || !matchMedia(NARROW).matches) return bar;
  return (
    <details>
      <summary>Filters{used > 0 && ` (${used})`}</summary>
      {bar}
    </details>
  );
}

interface SelectFilterProps<T extends string> {
  label: string;
  value: T | "";
  /** Undefined until it is loaded. */
  from: readonly T[] | undefined;
  /** Label of an option; default: the option itself. */
  name?(option: NoInfer<T>): string;
  /** False if one of the options is always selected. */
  any?: boolean;
  onValue(value: T | ""): void;
}

/** Select one option or any. Not rendered if there is no choice. */
export function SelectFilter<T extends string>({
  label,
  value,
  from: loaded,
  name = of => of,
  any = true,
  onValue,
}: SelectFilterProps<T>) {
  if (loaded && loaded.length < 2 && value === "") return null;
  const from = loaded ?? [];
  // Keep the selected value as an option even if no row has it.
  const options = value === "" || from.includes(value) ? from : [value, ...from];
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <select value={value} onChange={event => onValue(event.target.value as T | "")}>
        {any && <option value="">any</option>}
        {options.map(option => (
          <option key={option} value={option}>
            {name(option)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface CheckboxFilterProps<T extends string> {
  label: string;
  selected: readonly T[];
  /** Number of rows for each option, in display order. */
  counts: ReadonlyMap<T, number>;
  name(option: T): string;
  onSelected(selected: T[]): void;
}

/** Select any number of options; none selected means all. */
export function CheckboxFilter<T extends string>({
  label,
  selected,
  counts,
  name,
  onSelected,
}: CheckboxFilterProps<T>) {
  return (
    <fieldset className={classes.ticks}>
      <legend>{label}</legend>
      {[...counts].map(([option, total]) => (
        <label key={option}>
          <input
            type="checkbox"
            checked={selected.includes(option)}
            onChange={event =>
              onSelected(
                event.target.checked ? [...selected, option] : selected.filter(other => other !== option),
              )
            }
          />
          {name(option)} <span className="muted">{grouped(total)}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface TextFilterProps {
  label: string;
  hint?: string;
  value: string;
  onValue(value: string): void;
}

/** Text filter, applied after a pause in typing. */
export function TextFilter({ label, hint, value, onValue }: TextFilterProps) {
  const [typed, setTyped] = useDebouncedText(value, onValue, text => text.trim());
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

interface DayFilterProps {
  label: string;
  /** A day such as `2026-11-21`; "" for none. */
  value: string;
  onValue(value: string): void;
}

export function DayFilter({ label, value, onValue }: DayFilterProps) {
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <input type="date" value={value} onChange={event => onValue(event.target.value)} />
    </label>
  );
}

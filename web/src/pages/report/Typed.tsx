import { useEffect, useState } from "react";
import classes from "./Numbers.module.css";

const TYPING_MS = 250;

/** What is typed reaches the address when the typing pauses. */
export function Typed({
  label,
  value,
  onValue,
}: {
  label: string;
  value: string;
  onValue(value: string): void;
}) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed.trim() === value) return;
    const timer = setTimeout(() => onValue(typed.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  });
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <input
        type="search"
        value={typed}
        placeholder="metric, setting, reason"
        onChange={event => setTyped(event.target.value)}
      />
    </label>
  );
}

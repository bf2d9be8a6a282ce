import { useEffect, useRef, useState } from "react";

const DEBOUNCE_MS = 250;

/**
 * State of a text field whose value is kept in the URL. Typed text shows immediately and is reported after a pause;
 * changes of `value` from elsewhere replace it. After navigation to another page nothing is reported, because changing
 * the URL would navigate back. Returns the text of the field and its setter.
 */
export function useDebouncedText(
  value: string,
  onChange: (text: string) => void,
  /** Maps the typed text to the reported value. */
  normalize: (typed: string) => string = typed => typed,
): [string, (text: string) => void] {
  const [typed, setTyped] = useState(value);
  const reported = useRef(value);
  const page = useRef(location.pathname);
  const callback = useRef(onChange);
  callback.current = onChange;
  useEffect(() => {
    if (value === reported.current) return;
    reported.current = value;
    setTyped(value);
  }, [value]);
  const text = normalize(typed);
  useEffect(() => {
    if (text === reported.current) return;
    const timer = setTimeout(() => {
      if (location.pathname !== page.current) return;
      reported.current = text;
      callback.current(text);
    }, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return [typed, setTyped];
}

import { useEffect, useRef, useState } from "react";

const TYPING_MS = 250;

/**
 * A text field whose text goes into the address: what is typed shows at once and is told once the typing pauses; what
 * comes into the address otherwise shows too. On the way to another page nothing is told any more, although this one is
 * shown until that is there: a change of its address would call the reader back.
 */
export function useTyped(
  given: string,
  onTyped: (text: string) => void,
  /** What of the typed text is told. */
  told: (typed: string) => string = typed => typed,
): [string, (text: string) => void] {
  const [typed, setTyped] = useState(given);
  const known = useRef(given);
  const page = useRef(location.pathname);
  const tell = useRef(onTyped);
  tell.current = onTyped;
  useEffect(() => {
    if (given === known.current) return;
    known.current = given;
    setTyped(given);
  }, [given]);
  const text = told(typed);
  useEffect(() => {
    if (text === known.current) return;
    const timer = setTimeout(() => {
      if (location.pathname !== page.current) return;
      known.current = text;
      tell.current(text);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return [typed, setTyped];
}

import { useEffect, useState } from "react";

/** The value once it has not changed for a while. */
export function useDebounced(value: string, pauseMs = 700): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value, pauseMs]);
  return settled;
}

import { useEffect, useState } from "react";
import { absolute, msUntilTextChange, relative } from "@/lib/time";

/** Return the current time, updated every `everyMs`. */
export function useNow(everyMs: number): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A relative time that updates itself, with the absolute time as tooltip. Null is shown as `absent`. */
export function RelativeTime({
  at,
  absent = "never",
}: {
  at: string | Date | null | undefined;
  absent?: string;
}) {
  const [every, setEvery] = useState(1000);
  const now = useNow(every);
  const time = at == null ? null : typeof at === "string" ? new Date(at) : at;
  const interval = time === null ? 300_000 : msUntilTextChange(time, now);
  useEffect(() => setEvery(interval), [interval]);
  if (time === null) return <span className="muted">{absent}</span>;
  return (
    <time className="nowrap" dateTime={time.toISOString()} title={absolute(time)}>
      {relative(time, now)}
    </time>
  );
}

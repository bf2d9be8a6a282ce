import { useEffect, useState } from "react";
import { absolute, nextChange, relative } from "@/lib/time";

/** The time now, again after `everyMs`. */
export function useNow(everyMs: number): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** `6 min ago`, kept true; the absolute time in the title. Null is said as `absent`. */
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
  const wanted = time === null ? 300_000 : nextChange(time, now);
  useEffect(() => setEvery(wanted), [wanted]);
  if (time === null) return <span className="muted">{absent}</span>;
  return (
    <time className="nowrap" dateTime={time.toISOString()} title={absolute(time)}>
      {relative(time, now)}
    </time>
  );
}

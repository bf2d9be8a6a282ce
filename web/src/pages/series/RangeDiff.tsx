import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { rangeDiffQuery } from "@/api/queries";
import type { PatchPair } from "@/api/types";
import { clean, oneLine } from "@/lib/words";
import { Scroll } from "@/parts/Scroll";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./RangeDiff.module.css";

const WORDS: Record<PatchPair["change"], string> = {
  "=": "equal",
  "!": "changed",
  "<": "removed",
  ">": "added",
};

/** What changed between the series of two submissions, patch by patch as git-range-diff(1) shows it; loaded if opened. */
export function RangeDiff({ first, second, title }: { first: number; second: number; title: string }) {
  const [opened, setOpened] = useState(false);
  const { data, error } = useQuery({ ...rangeDiffQuery(first, second), enabled: opened });
  return (
    <details onToggle={event => setOpened(event.currentTarget.open)}>
      <summary>{title}</summary>
      {data ? (
        <ol className={classes.patches} aria-label={title}>
          {data.map(pair => (
            <li key={`${pair.first} ${pair.second}`}>
              <p>
                <code>{`${pair.first ?? "-"}: ${pair.change} ${pair.second ?? "-"}:`}</code>{" "}
                {oneLine(pair.subject)} <span className="muted">{WORDS[pair.change]}</span>
              </p>
              {pair.difference.length > 0 && (
                <Scroll name={`Difference of ${oneLine(pair.subject)}`} className={classes.difference}>
                  <pre>
                    {pair.difference.map((line, at) => (
                      // biome-ignore lint/suspicious/noArrayIndexKey: the lines do not change
                      <span key={at} data-change={/^[-+]/.exec(line)?.[0]}>
                        {`${clean(line)}\n`}
                      </span>
                    ))}
                  </pre>
                </Scroll>
              )}
            </li>
          ))}
        </ol>
      ) : error ? (
        <p className="muted">{error.message}</p>
      ) : (
        <Skeleton lines={3} />
      )}
    </details>
  );
}

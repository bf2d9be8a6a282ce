/** Which changed lines or functions ran on a target: in words, and the diff with a mark at each line. */
import { useMemo } from "react";
import type { Ran as State, TargetReport } from "@/api/types";
import { oneLine } from "@/lib/words";
import classes from "./Ran.module.css";
import { type DiffLine, diffLines } from "./ranLines";

const STATES: Record<State, { sign: string; word: string }> = {
  measured: { sign: "●", word: "ran while the device counted" },
  outside: { sign: "◐", word: "ran only at other times, such as while the kernel booted" },
  never: { sign: "○", word: "did not run" },
  unknown: { sign: "?", word: "not known" },
};

interface RanProps {
  target: TargetReport;
  diff: string;
  /** The device, if there are several. */
  where?: string;
}

export function Ran({ target, diff, where = "" }: RanProps) {
  const { ran } = target;
  const lines = useMemo(() => (ran && diff ? diffLines(diff, ran.lines) : []), [ran, diff]);
  if (!ran) return null;
  return (
    <div className={classes.whole}>
      <h3>Changed code that ran{where && ` on ${where}`}</h3>
      <ul className={classes.sentences}>
        {ran.sentences.map(sentence => (
          <li key={sentence}>{oneLine(sentence)}</li>
        ))}
      </ul>
      {lines.length > 0 && (
        <details>
          <summary>Diff, with a mark at each line</summary>
          <p className={classes.legend}>
            {Object.entries(STATES).map(([state, { sign, word }]) => (
              <span key={state} data-ran={state}>
                <span aria-hidden="true">{sign}</span> {word}
              </span>
            ))}
          </p>
          <pre className={classes.diff}>
            {lines.map(line => (
              <Line key={line.key} line={line} />
            ))}
          </pre>
        </details>
      )}
    </div>
  );
}

function Line({ line }: { line: DiffLine }) {
  const state = line.ran && STATES[line.ran];
  return (
    <span className={classes.line} data-ran={line.ran} data-head={line.isHead || undefined}>
      <span className={classes.sign} aria-hidden="true">
        {state ? state.sign : " "}
      </span>
      {state && <span className="hidden-visually">{state.word}: </span>}
      {line.text}
      {"\n"}
    </span>
  );
}

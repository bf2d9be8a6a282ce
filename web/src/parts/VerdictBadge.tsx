import type { Verdict } from "@/api/types";
import { type Tone, VERDICT_ORDER, VERDICTS } from "@/lib/words";
import classes from "./VerdictBadge.module.css";

/** A verdict as sign, word and colour; `no evidence` has only a word. Null is shown as "no verdict". */
export function VerdictBadge({
  verdict,
  short = false,
}: {
  verdict: Verdict | null | undefined;
  short?: boolean;
}) {
  if (verdict == null) return <span className={classes.absent}>no verdict</span>;
  return <Badge {...VERDICTS[verdict]} verdict={verdict} short={short} />;
}

interface BadgeProps {
  sign: string;
  word: string;
  tone: Tone;
  meaning?: string;
  verdict?: Verdict;
  short?: boolean;
}

/** A sign, a word and a colour. `short`: only a screen reader says the word. */
export function Badge({ sign, word, tone, meaning, verdict, short = false }: BadgeProps) {
  return (
    <span className={classes.badge} data-tone={tone} data-verdict={verdict} title={meaning}>
      {sign && (
        <span className={classes.sign} aria-hidden="true">
          {sign}
        </span>
      )}
      <span className={short && sign ? "hidden-visually" : undefined}>{word}</span>
    </span>
  );
}

/** The number of comparisons with each verdict, most severe first. */
export function VerdictCounts({ verdicts }: { verdicts: Partial<Record<Verdict, number>> }) {
  const present = VERDICT_ORDER.filter(verdict => (verdicts[verdict] ?? 0) > 0);
  if (present.length === 0) return null;
  return (
    <span className={classes.counts}>
      {present.map(verdict => (
        <span key={verdict} className={classes.count}>
          <VerdictBadge verdict={verdict} />
          {(verdicts[verdict] ?? 0) > 1 && <span className={classes.times}>×{verdicts[verdict]}</span>}
        </span>
      ))}
    </span>
  );
}

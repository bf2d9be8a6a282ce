/** What differs beside a primary metric that differs: differences in words, never causes. */
import type { ExplainedComparison, TargetReport, TracedDifference } from "@/api/types";
import { isInstrumented } from "@/lib/instrumented";
import { count, metricName, number, places } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import classes from "./Counts.module.css";

const HEADING = "What else differs";
const NOTHING = "No other count differs by 10 % or more beyond its noise.";

/** An instrumented device has the same sentences under “Where it comes from”. */
export function Explanation({ target }: { target: TargetReport }) {
  const explanation = target.explanation;
  if (!explanation || isInstrumented(target)) return null;
  if (explanation.comparisons.length === 0)
    return (
      <p className={classes.note}>
        {HEADING}: not recorded: {oneLine(explanation.reason)}.
      </p>
    );
  return (
    <div className={classes.whole}>
      <h3>{HEADING}</h3>
      {explanation.comparisons.map(each => (
        <One key={`${each.scenario} ${each.setting} ${each.metric} ${each.kernel}`} explained={each} />
      ))}
      <p className={classes.note}>
        These are differences beside the result, not its causes. The boots with tracing are no part of the
        verdict.
      </p>
    </div>
  );
}

function One({ explained }: { explained: ExplainedComparison }) {
  const against = explained.kernel ? `, against ${explained.reference || "the default"}` : "";
  const where =
    [explained.scenario, explained.setting, metricName(explained.metric)].filter(Boolean).join(" ") + against;
  const boots = `${count(explained.boots, "traced boot")} a side`;
  const more = explained.differences.length > explained.sentences.length;
  return (
    <div className={classes.cell}>
      <p>
        {where} ({boots})
      </p>
      <ul className={classes.sentences}>
        {explained.sentences.length === 0 && <li>{NOTHING}</li>}
        {explained.sentences.map(sentence => (
          <li key={sentence}>{oneLine(sentence).replaceAll(" -> ", " → ")}</li>
        ))}
      </ul>
      {more && (
        <details>
          <summary>All {count(explained.differences.length, "ranked difference")}</summary>
          <DataTable
            caption={`${where}: what differs, the largest relative change first`}
            columns={COLUMNS}
            rows={explained.differences}
            rowKey={of => of.text}
            fixedOrder
          />
        </details>
      )}
      {explained.notes.map(note => (
        <p key={note} className={classes.note}>
          {oneLine(note)}
        </p>
      ))}
    </div>
  );
}

/** Each boot's value, with the same number of decimal places. */
function values(of: TracedDifference, side: readonly number[]): string {
  const decimals = places([...of.reference, ...of.compared]);
  return side.map(each => number(each, decimals)).join(", ");
}

const COLUMNS: readonly Column<TracedDifference>[] = [
  {
    id: "what",
    header: "what",
    value: of => of.text.split(": ")[0],
    cell: of => oneLine(of.text.split(": ")[0] ?? ""),
    rowHeader: true,
  },
  { id: "reference", header: "reference, each boot", value: of => values(of, of.reference), numeric: true },
  { id: "compared", header: "compared, each boot", value: of => values(of, of.compared), numeric: true },
  { id: "unit", header: "unit", value: of => of.unit },
];

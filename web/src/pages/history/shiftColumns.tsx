/** Columns of tables of shifts. */
import { Link } from "@tanstack/react-router";
import type { HistoryShift } from "@/api/types";
import { metricName } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import type { Column } from "@/parts/DataTable";
import { StateBadge } from "@/parts/StateBadge";
import { Badge } from "@/parts/VerdictBadge";
import classes from "./history.module.css";
import { cellText, changeOf, headText, measuredText, suspectedText } from "./labels";

const what: Column<HistoryShift> = {
  id: "what",
  header: "Metric",
  rowHeader: true,
  value: of => `${metricName(of.line.metric)}, ${cellText(of.line)}`,
  cell: of => (
    <>
      <Link to="/history/shifts/$id" params={{ id: of.id }} className={`${classes.long} ${classes.target}`}>
        {metricName(of.line.metric)}
      </Link>{" "}
      <span className="muted">{cellText(of.line)}</span>
    </>
  ),
};

const change: Column<HistoryShift> = {
  id: "change",
  header: "Change",
  value: of => changeOf(of).word,
  cell: of => <Badge {...changeOf(of)} />,
};

const suspected: Column<HistoryShift> = {
  id: "suspected",
  header: "Suspected",
  hint: "Effect when the shift was opened",
  numeric: true,
  value: of => of.suspected_effect,
  text: suspectedText,
};

const measured: Column<HistoryShift> = {
  id: "measured",
  header: "Measured again",
  hint: "Effect and 95 % interval in the paired run of both sides",
  numeric: true,
  value: of => of.effect,
  text: of => measuredText(of) || "not yet",
  cell: of => measuredText(of) || <span className="muted">not yet</span>,
};

const state: Column<HistoryShift> = {
  id: "state",
  header: "State",
  value: of => of.state.replaceAll("_", " "),
  cell: of => (
    <>
      <StateBadge state={of.state} />
      {of.owner && <span className="muted"> {of.owner}</span>}
    </>
  ),
};

const commits: Column<HistoryShift> = {
  id: "commits",
  header: "Heads",
  hint: "Last head with the old level and first head with the new one",
  value: of => `${headText(of.before, of.line)} → ${headText(of.after, of.line)}`,
  cell: of => (
    <Link
      to="/history/$id"
      params={{ id: of.line.id }}
      search={{ at: of.after.id }}
      className={classes.heads}
    >
      <code>{headText(of.before, of.line)}</code> → <code>{headText(of.after, of.line)}</code>
    </Link>
  ),
};

const confirmation: Column<HistoryShift> = {
  id: "confirmation",
  header: "Confirmation",
  hint: "Submission that measures both sides again",
  wrap: true,
  value: of => of.submission_id,
  text: of => (of.submission_id === null ? oneLine(of.reason) : `submission ${of.submission_id}`),
  cell: of =>
    of.submission_id === null ? (
      <span className="muted">{oneLine(of.reason) || "not submitted yet"}</span>
    ) : (
      <Link to="/submissions/$id" params={{ id: of.submission_id }} className={classes.target}>
        submission {of.submission_id}
      </Link>
    ),
};

const opened: Column<HistoryShift> = {
  id: "opened",
  header: "Opened",
  value: of => of.created_at,
  time: true,
};

export const SHIFT_COLUMNS = [what, change, suspected, measured, state, commits, confirmation, opened];
/** Without the columns that are the same for all shifts of a line. */
export const LINE_SHIFT_COLUMNS = [
  { ...what, header: "Shift", value: (of: HistoryShift) => of.id, cell: shiftLink },
  change,
  suspected,
  measured,
  state,
  commits,
  confirmation,
  opened,
];

function shiftLink(of: HistoryShift) {
  return (
    <Link to="/history/shifts/$id" params={{ id: of.id }} className={classes.target}>
      shift {of.id}
    </Link>
  );
}

/** The table of lines and its filters. */
import { Link } from "@tanstack/react-router";
import type { HistoryLine } from "@/api/types";
import { metricName } from "@/lib/numbers";
import type { Column } from "@/parts/DataTable";
import classes from "./history.module.css";
import { cellText } from "./labels";
import { levelText, valueText } from "./points";
import { Sparkline } from "./Sparkline";

export const LINE_COLUMNS: Column<HistoryLine>[] = [
  {
    id: "metric",
    header: "Metric",
    rowHeader: true,
    value: of => `${metricName(of.metric)}, ${cellText(of)}`,
    cell: of => (
      <>
        <Link to="/history/$id" params={{ id: of.id }} className={classes.long}>
          {metricName(of.metric)}
        </Link>{" "}
        <span className="muted">{cellText(of)}</span>
      </>
    ),
  },
  { id: "type", header: "Device type", value: of => of.device_type },
  { id: "tree", header: "Tree and branch", value: of => `${of.tree} ${of.ref}` },
  { id: "role", header: "Role", value: of => of.role },
  {
    id: "trend",
    header: "Last heads",
    hint: "The values of the last 40 heads; sorts by the number of heads",
    value: of => of.points,
    text: of => `${of.points} heads`,
    cell: of => (
      <>
        <Sparkline values={of.recent} />
        {of.points > of.recent.length && <span className="muted"> of {of.points}</span>}
      </>
    ),
  },
  {
    id: "last",
    header: "Last value",
    numeric: true,
    value: of => of.last?.value,
    text: of => (of.last ? valueText(of.last, of) : ""),
  },
  {
    id: "level",
    header: "Level",
    hint: "Median of the last level, and the standard deviation of a head around it",
    numeric: true,
    value: of => of.level?.middle,
    text: levelText,
  },
  { id: "measured", header: "Measured", value: of => of.last?.at, time: true },
  {
    id: "open",
    header: "Open shifts",
    numeric: true,
    value: of => of.open_shifts,
    cell: of => (of.open_shifts > 0 ? <strong>{of.open_shifts}</strong> : <span className="muted">0</span>),
  },
];

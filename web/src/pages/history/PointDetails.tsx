import { Link } from "@tanstack/react-router";
import type { HistoryLineData, HistoryPoint, HistoryShift } from "@/api/types";
import { count } from "@/lib/numbers";
import { absolute } from "@/lib/time";
import { oneLine } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { Facts } from "@/parts/Facts";
import { Badge, VerdictBadge } from "@/parts/VerdictBadge";
import classes from "./history.module.css";
import { changeOf, headText } from "./labels";
import { bootsText, changeText, valueText } from "./points";

interface PointDetailsProps {
  line: HistoryLineData;
  /** Index of the point. */
  index: number;
  /** Shift that begins here. */
  shift: HistoryShift | undefined;
}

/** Everything about the selected point. */
export function PointDetails({ line, index, shift }: PointDetailsProps) {
  const point = line.series[index] as HistoryPoint;
  const level = line.levels.find(each => index >= each.start && index < each.end);
  const change = changeText(point, line);
  return (
    <Facts
      of={{
        Head: (
          <span className={classes.commit}>
            {point.head.name !== line.ref && <strong>{point.head.name} </strong>}
            <code className={classes.long}>{point.head.commit}</code>{" "}
            <CopyButton text={point.head.commit} name="Copy the commit" />
          </span>
        ),
        Measured: absolute(new Date(point.at)),
        Value: (
          <>
            {valueText(point, line)}{" "}
            <span className="muted">{point.n > 0 ? `of ${bootsText(point)}` : bootsText(point)}</span>
          </>
        ),
        Level: level && (
          <>
            {headText(line.series[level.start]?.head ?? point.head, line)} to{" "}
            {headText(line.series[level.end - 1]?.head ?? point.head, line)},{" "}
            {count(level.end - level.start, "head")}
          </>
        ),
        "From the head before": (
          <>
            {point.verdict === null ? (
              <span className="muted">not compared: the first head of the line</span>
            ) : (
              <>
                {change && `${change} `}
                <VerdictBadge verdict={point.verdict} />
              </>
            )}
          </>
        ),
        Environment: (
          <>{point.cut ? <>Changed before this head: {oneLine(point.cut)}</> : "as at the head before"}</>
        ),
        Shift: shift && (
          <>
            <Link to="/history/shifts/$id" params={{ id: shift.id }}>
              shift {shift.id}
            </Link>{" "}
            <Badge {...changeOf(shift)} /> {shift.state.replaceAll("_", " ")}
          </>
        ),
        Source: (
          <>
            <Link to="/submissions/$id" params={{ id: point.submission_id }} search={{ run: point.run_id }}>
              run {point.run_id} of submission {point.submission_id}
            </Link>
            ,{" "}
            <Link to="/r/$id" params={{ id: point.submission_id }}>
              report
            </Link>
          </>
        ),
      }}
    />
  );
}

/** Device usage over time: a row for each device, a bar for each run attempt. */
import { Link } from "@tanstack/react-router";
import { Fragment, type ReactNode, useMemo } from "react";
import type { Timeline, TimelineBar, TimelineDevice } from "@/api/types";
import { duration } from "@/lib/time";
import { FAILURE_KINDS, humanize, oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Figure } from "@/parts/Figure";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./GanttFigure.module.css";
import { fits, nameParts, type Place, placeOf, type Sign, signsAbove, spanOf, ticksOf } from "./gantt";
import { useWidth } from "./useWidth";

interface GanttFigureProps {
  title: string;
  timeline: Timeline;
  controls?: ReactNode;
}

const TICKS = 10;
/** Range of positions, in percent, in which a centred tick label stays within the axis, also on phones. */
const FIRST_LABEL = 6;
const LAST_LABEL = 94;

export function GanttFigure({ title, timeline, controls }: GanttFigureProps) {
  const { devices, bars } = timeline;
  const axis = useMemo(
    () => ({ since: ms(timeline.since), until: ms(timeline.until), now: ms(timeline.at) }),
    [timeline.since, timeline.until, timeline.at],
  );
  const ticks = useMemo(() => ticksOf(axis.since, axis.until, TICKS), [axis]);
  const rows = useMemo(() => rowsOf(devices, bars, axis), [devices, bars, axis]);
  const [track, width] = useWidth<HTMLDivElement>();
  const now = axis.now < axis.until ? placeOf(axis.now, axis.since, axis.until) : null;
  return (
    <Figure
      title={title}
      controls={controls}
      description={
        <>
          <span className={classes.keys}>
            <Key outcome="passed">passed</Key> <Key outcome="failed">{SIGNS.failed} failed</Key>{" "}
            <Key outcome="canceled">{SIGNS.canceled} canceled</Key>{" "}
            <Key outcome="running">{SIGNS.running} running</Key>{" "}
            <Key outcome="passed" health>
              health check
            </Key>
          </span>
          Each bar is a run on a device, labelled with the number of its submission. Select a bar to open the
          submission.
        </>
      }
      table={
        <DataTable
          caption={title}
          captionHidden
          columns={COLUMNS}
          rows={bars}
          rowKey={of => `${of.run_id}-${of.attempt}-${of.device}-${of.started_at}`}
          initialSort={{ id: "began", desc: true }}
          empty="No runs in this period."
          narrow="stack"
          maxHeight="24rem"
        />
      }
    >
      <div className={classes.chart}>
        <div className={classes.axis} ref={track}>
          {ticks.map(
            (tick, at) =>
              tick.left >= FIRST_LABEL &&
              tick.left <= LAST_LABEL && (
                <span key={tick.at} data-odd={at % 2 === 1 || undefined} style={{ left: `${tick.left}%` }}>
                  {tick.label}
                </span>
              ),
          )}
        </div>
        {rows.map(({ device, first, shown }) => (
          <Fragment key={device.name}>
            {first && <div className={classes.type}>{device.device_type}</div>}
            <DeviceName of={device.name} />
            <div className={classes.track}>
              {ticks.map(tick => (
                <i key={tick.at} className={classes.line} style={{ left: `${tick.left}%` }} />
              ))}
              {now !== null && <i className={classes.now} style={{ left: `${now}%` }} />}
              {shown.map(({ bar, place }) => (
                <Bar
                  key={`${bar.run_id}-${bar.attempt}-${bar.started_at}`}
                  bar={bar}
                  place={place}
                  text={barText(bar, place, width)}
                />
              ))}
              {signsAbove(
                shown.flatMap(each => signAbove(each, width)),
                width,
                SIGN_PRIORITIES,
              ).map(sign => (
                <b key={sign.left} className={classes.sign} style={{ left: `${sign.left}%` }}>
                  {sign.text}
                </b>
              ))}
            </div>
          </Fragment>
        ))}
      </div>
    </Figure>
  );
}

/** A device's name; only its stem is truncated. */
function DeviceName({ of }: { of: string }) {
  const [stem, tail] = nameParts(of);
  return (
    <div className={classes.device} title={of}>
      <span className={classes.stem}>{stem}</span>
      <span>{tail}</span>
    </div>
  );
}

/** Return the text that fits into a bar: sign and number, the number alone, or "". */
function barText(bar: TimelineBar, place: Place, track: number): string {
  if (bar.purpose === "health_check") return "";
  const number = bar.submission_id === null ? "" : String(bar.submission_id);
  const texts = [`${SIGNS[bar.outcome ?? "running"]} ${number}`.trim(), number];
  return texts.find(text => text !== "" && fits(text, place, track)) ?? "";
}

/** Return the sign that does not fit into its bar, if any. */
function signAbove({ bar, place }: Row["shown"][number], track: number): Sign[] {
  const sign = SIGNS[bar.outcome ?? "running"];
  return sign === "" || barText(bar, place, track).startsWith(sign) ? [] : [{ left: place.left, text: sign }];
}

/** A bar. Not focusable: the table has the same links for the keyboard. */
function Bar({ bar, place, text }: { bar: TimelineBar; place: Place; text: string }) {
  const ended = outcomeText(bar);
  const look = {
    className: classes.bar,
    "data-outcome": bar.outcome ?? "running",
    "data-health": bar.purpose === "health_check" || undefined,
    // Keep a run that has just started visible at the end of the axis.
    style: { left: `min(${place.left}%, 100% - 4px)`, width: `${place.width}%` },
    title: `${labelOf(bar)}, ${bar.plan} on ${bar.device}: ${ended}, ${durationText(bar) || "not finished"}`,
    tabIndex: -1,
  };
  const shown = text && <span className={classes.number}>{text}</span>;
  return bar.submission_id === null ? (
    <Link {...look} to="/lab/$name" params={{ name: bar.device }}>
      {shown}
    </Link>
  ) : (
    <Link {...look} to="/submissions/$id" params={{ id: bar.submission_id }} search={{ run: bar.run_id }}>
      {shown}
    </Link>
  );
}

function Key({ outcome, health, children }: { outcome: string; health?: boolean; children: ReactNode }) {
  return (
    <span className={classes.key}>
      <i className={classes.swatch} data-outcome={outcome} data-health={health || undefined} />
      {children}
    </span>
  );
}

const SIGNS = { passed: "", failed: "!", canceled: "/", running: "›" };
/** The signs, in order of increasing priority. */
const SIGN_PRIORITIES = `${SIGNS.canceled}${SIGNS.running}${SIGNS.failed}`;

interface Row {
  device: TimelineDevice;
  /** True for the first device of its type. */
  first: boolean;
  shown: { bar: TimelineBar; place: Place }[];
}

/** Return the rows of the chart, grouped by device type. */
export function rowsOf(
  devices: readonly TimelineDevice[],
  bars: readonly TimelineBar[],
  axis: { since: number; until: number; now: number },
): Row[] {
  const types = [...new Set(devices.map(each => each.device_type))];
  const ofDevice = Map.groupBy(bars, bar => bar.device);
  return types.flatMap(type =>
    devices
      .filter(each => each.device_type === type)
      .map((device, at) => ({
        device,
        first: at === 0,
        shown: (ofDevice.get(device.name) ?? []).flatMap(bar => {
          const place = spanOf(ms(bar.started_at), bar.finished_at ? ms(bar.finished_at) : null, axis);
          return place ? [{ bar, place }] : [];
        }),
      })),
  );
}

const COLUMNS: Column<TimelineBar>[] = [
  { id: "device", header: "device", rowHeader: true, value: of => of.device },
  {
    id: "what",
    header: "run",
    value: labelOf,
    wrap: true,
    cell: of =>
      of.submission_id === null ? (
        labelOf(of)
      ) : (
        <Link to="/submissions/$id" params={{ id: of.submission_id }} search={{ run: of.run_id }}>
          {labelOf(of)}
        </Link>
      ),
  },
  { id: "plan", header: "plan", value: of => of.plan },
  { id: "owner", header: "owner", value: of => of.owner },
  {
    id: "began",
    header: "started",
    value: of => of.started_at,
    cell: of => <RelativeTime at={of.started_at} />,
  },
  {
    id: "took",
    header: "duration (h:min:s)",
    numeric: true,
    value: of => (of.finished_at ? ms(of.finished_at) - ms(of.started_at) : null),
    text: durationText,
  },
  { id: "ended", header: "outcome", wrap: true, value: outcomeText },
];

function labelOf(bar: TimelineBar): string {
  if (bar.submission_id === null) return humanize(bar.purpose);
  return `${bar.submission_id}: ${oneLine(bar.title) || "untitled"}`;
}

/** Format the outcome with its failure: `failed (kernel): panic`. */
function outcomeText(bar: TimelineBar): string {
  if (bar.outcome === null) return "running";
  const kind =
    bar.failure_kind && bar.outcome === "failed" ? ` (${FAILURE_KINDS[bar.failure_kind].word})` : "";
  const reason = bar.failure && bar.outcome !== "passed" ? `: ${oneLine(bar.failure)}` : "";
  return humanize(bar.outcome) + kind + reason;
}

function durationText(bar: TimelineBar): string {
  return bar.finished_at ? duration((ms(bar.finished_at) - ms(bar.started_at)) / 1000) : "";
}

function ms(at: string): number {
  return new Date(at).getTime();
}

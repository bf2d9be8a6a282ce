/** Which run had which device when: a row for each device, a bar for each time a run had it. */
import { Link } from "@tanstack/react-router";
import { Fragment, type ReactNode, useMemo } from "react";
import type { Timeline, TimelineBar, TimelineDevice } from "@/api/types";
import { duration } from "@/lib/time";
import { oneLine, spoken, WHOSE } from "@/lib/words";
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
/** Between them a label is in the middle of its tick without reaching beyond the track, on a phone too. */
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
            <Key outcome="running">{SIGNS.running} at work</Key>{" "}
            <Key outcome="passed" health>
              health check
            </Key>
          </span>
          A bar is a run on a device, with its submission's number where there is room; a press on it leads
          there.
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
          empty="No run had a device in this time."
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
            <Name of={device.name} />
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
                  text={inside(bar, place, width)}
                />
              ))}
              {signsAbove(
                shown.flatMap(each => above(each, width)),
                width,
                WEIGHTS,
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

/** Shortened where it must be, but never at its end, which tells it from its siblings. */
function Name({ of }: { of: string }) {
  const [stem, tail] = nameParts(of);
  return (
    <div className={classes.device} title={of}>
      <span className={classes.stem}>{stem}</span>
      <span>{tail}</span>
    </div>
  );
}

/** What stands in a bar on a track so many pixels wide: sign and number, the number alone, or nothing. */
function inside(bar: TimelineBar, place: Place, track: number): string {
  if (bar.purpose === "health_check") return "";
  const number = bar.submission_id === null ? "" : String(bar.submission_id);
  const texts = [`${SIGNS[bar.outcome ?? "running"]} ${number}`.trim(), number];
  return texts.find(text => text !== "" && fits(text, place, track)) ?? "";
}

/** The sign that has no room in its bar. */
function above({ bar, place }: Row["shown"][number], track: number): Sign[] {
  const sign = SIGNS[bar.outcome ?? "running"];
  return sign === "" || inside(bar, place, track).startsWith(sign) ? [] : [{ left: place.left, text: sign }];
}

/** The table says the same to those who come by keyboard, so bars take no focus. */
function Bar({ bar, place, text }: { bar: TimelineBar; place: Place; text: string }) {
  const ended = howItEnded(bar);
  const look = {
    className: classes.bar,
    "data-outcome": bar.outcome ?? "running",
    "data-health": bar.purpose === "health_check" || undefined,
    // What has just begun, at the very end, is seen too.
    style: { left: `min(${place.left}%, 100% - 4px)`, width: `${place.width}%` },
    title: `${whatOf(bar)}, ${bar.plan} on ${bar.device}: ${ended}, ${took(bar) || "not ended"}`,
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
/** The signs, the weightiest last. */
const WEIGHTS = `${SIGNS.canceled}${SIGNS.running}${SIGNS.failed}`;

interface Row {
  device: TimelineDevice;
  /** Of its type. */
  first: boolean;
  shown: { bar: TimelineBar; place: Place }[];
}

/** Devices of a type beside each other, in the order they come. */
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
    header: "what",
    value: whatOf,
    wrap: true,
    cell: of =>
      of.submission_id === null ? (
        whatOf(of)
      ) : (
        <Link to="/submissions/$id" params={{ id: of.submission_id }} search={{ run: of.run_id }}>
          {whatOf(of)}
        </Link>
      ),
  },
  { id: "plan", header: "plan", value: of => of.plan },
  { id: "owner", header: "owner", value: of => of.owner },
  {
    id: "began",
    header: "began",
    value: of => of.started_at,
    cell: of => <RelativeTime at={of.started_at} />,
  },
  {
    id: "took",
    header: "took (h:min:s)",
    numeric: true,
    value: of => (of.finished_at ? ms(of.finished_at) - ms(of.started_at) : null),
    text: took,
  },
  { id: "ended", header: "ended", wrap: true, value: howItEnded },
];

function whatOf(bar: TimelineBar): string {
  if (bar.submission_id === null) return spoken(bar.purpose);
  return `${bar.submission_id}: ${oneLine(bar.title) || "untitled"}`;
}

/** `failed (kernel): panic`. */
function howItEnded(bar: TimelineBar): string {
  if (bar.outcome === null) return "at work";
  const whose = bar.failure_kind && bar.outcome === "failed" ? ` (${WHOSE[bar.failure_kind].word})` : "";
  const why = bar.failure && bar.outcome !== "passed" ? `: ${oneLine(bar.failure)}` : "";
  return spoken(bar.outcome) + whose + why;
}

function took(bar: TimelineBar): string {
  return bar.finished_at ? duration((ms(bar.finished_at) - ms(bar.started_at)) / 1000) : "";
}

function ms(at: string): number {
  return new Date(at).getTime();
}

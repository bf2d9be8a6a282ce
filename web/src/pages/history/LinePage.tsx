/** A metric over the heads of a branch. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { memo, useCallback, useMemo } from "react";
import { historyLineQuery } from "@/api/historyQueries";
import type { HistoryLineData, HistoryPoint } from "@/api/types";
import { markOf } from "@/figures/marks";
import { Button } from "@/kit";
import { count, metricName, withUnit } from "@/lib/numbers";
import { absolute } from "@/lib/time";
import { EVIDENCE, humanize, oneLine, VERDICTS } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Figure } from "@/parts/Figure";
import { Page, Section } from "@/parts/Page";
import { type Floor, floorText, useFloor } from "./floor";
import { cutsIn, MARKED, markedAs, markPath } from "./geometry";
import classes from "./history.module.css";
import { LineChart } from "./LineChart";
import { cellText, DIRECTION_WORDS, headText } from "./labels";
import { OtherTypes } from "./OtherTypes";
import { PointDetails } from "./PointDetails";
import { changeText, levelText, valueText } from "./points";
import { LINE_SHIFT_COLUMNS } from "./shiftColumns";
import { useView } from "./useView";
import { lowerBound, pressed, type Range, type Shown, selecting, shownOf, viewOf } from "./view";

const REFRESH_MS = 60_000;
const route = getRouteApi("/history/$id");

export function LinePage() {
  const { id } = route.useParams();
  const { data: line } = useSuspenseQuery({ ...historyLineQuery(id), refetchInterval: REFRESH_MS });
  return <Line key={id} line={line} />;
}

function Line({ line }: { line: HistoryLineData }) {
  const { from, to, at } = route.useSearch();
  const navigate = route.useNavigate();
  const [view, setView] = useView(
    { from, to, at },
    changed => void navigate({ search: changed, replace: true, resetScroll: false }),
  );
  const { series, shifts } = line;
  const floor = useFloor(line);
  const heads = useMemo(() => series.map(point => point.head.id), [series]);
  const shown = useMemo(() => shownOf(heads, view), [heads, view]);
  const { start, end } = shown.range;
  // The same object while only the selection changes.
  const range = useMemo((): Range => ({ start, end }), [start, end]);
  const onShown = useCallback((next: Shown) => setView(viewOf(heads, next)), [heads, setView]);
  const places = useMemo(
    () => shifts.map(({ after }) => (heads.includes(after.id) ? lowerBound(heads, after.id) : -1)),
    [shifts, heads],
  );
  const table = useMemo(() => <PointTable line={line} />, [line]);
  return (
    <Page
      title={`${metricName(line.metric)} on ${line.device_type}`}
      trail={
        <>
          <Link to="/history">History</Link> /{" "}
          <Link to="/history" search={{ tree: line.tree }}>
            {line.tree}
          </Link>{" "}
          / {line.ref}
        </>
      }
      lead={
        <>
          {cellText(line)}. {DIRECTION_WORDS[line.direction]}{" "}
          {line.delta ? `Relevant from ${withUnit(line.delta, line.effect_unit)}. ` : ""}
          {levelText(line) && `Level now: ${levelText(line)}.`}
        </>
      }
      actions={
        <>
          <a href={`/api/v1/history/lines/${line.id}?format=csv`} download={`wqlab-history-${line.id}.csv`}>
            CSV
          </a>
          <a href={`/api/v1/history/lines/${line.id}`} download={`wqlab-history-${line.id}.json`}>
            JSON
          </a>
          <CopyButton label="Copy link" name="Copy link to this view" text={() => linkTo(view)} />
        </>
      }
    >
      {series.length === 0 ? (
        <EmptyState title="This line has no points yet" />
      ) : (
        <>
          <Figure
            title={`${metricName(line.metric)}, ${count(series.length, "head")} of ${line.ref}`}
            interactive
            controls={<Controls shown={shown} total={series.length} onShown={onShown} />}
            description={<Description line={line} floor={floor} />}
            table={table}
          >
            <LineChart line={line} floor={floor} shown={shown} places={places} onShown={onShown} />
          </Figure>
          <Section
            id="point"
            title={
              shown.at === null
                ? "Selected head"
                : `Head ${headText((series[shown.at] as HistoryPoint).head, line)}`
            }
          >
            {shown.at === null ? (
              <p className="muted">
                Select a head in the chart to see its values, what was compared, and what changed in the
                environment.
              </p>
            ) : (
              <PointDetails line={line} index={shown.at} shift={shifts[places.indexOf(shown.at)]} />
            )}
          </Section>
          <Events line={line} range={range} onShown={onShown} />
        </>
      )}
      <OtherTypes line={line} />
    </Page>
  );
}

/** Absolute link to the view on the screen, also while it is not in the address yet. */
function linkTo(view: { from: number | null; to: number | null; at: number | null }): string {
  const url = new URL(location.pathname, location.origin);
  for (const [name, value] of Object.entries(view))
    if (value !== null) url.searchParams.set(name, String(value));
  return url.href;
}

interface ControlsProps {
  shown: Shown;
  total: number;
  onShown(shown: Shown): void;
}

/** The keys as buttons, for pointers and touch. */
function Controls({ shown, total, onShown }: ControlsProps) {
  const { start, end } = shown.range;
  const button = (key: string, label: string, disabled: boolean) => (
    <Button
      size="compact-xs"
      variant="default"
      disabled={disabled}
      onClick={() => {
        const next = pressed(key, shown, total);
        if (next) onShown(next);
      }}
    >
      {label}
    </Button>
  );
  const whole = end - start >= total;
  const move = (by: number) => ({ range: { start: start + by, end: end + by }, at: shown.at });
  const half = Math.max(1, Math.floor((end - start) / 2));
  return (
    <>
      <span className="muted">{whole ? "all heads" : `heads ${start + 1} to ${end} of ${total}`}</span>
      {!whole && (
        <>
          <Button
            size="compact-xs"
            variant="default"
            disabled={start === 0}
            onClick={() => onShown(move(-Math.min(half, start)))}
          >
            Earlier
          </Button>
          <Button
            size="compact-xs"
            variant="default"
            disabled={end === total}
            onClick={() => onShown(move(Math.min(half, total - end)))}
          >
            Later
          </Button>
        </>
      )}
      {button("+", "Zoom in", end - start <= 5)}
      {button("-", "Zoom out", whole)}
      {!whole && (
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => onShown({ range: { start: 0, end: total }, at: shown.at })}
        >
          All heads
        </Button>
      )}
    </>
  );
}

const Description = memo(function Description({
  line,
  floor,
}: {
  line: HistoryLineData;
  floor: Floor | null;
}) {
  const present = new Set(line.series.map(point => markedAs(point.verdict)));
  return (
    <>
      <span className={classes.legend}>
        {MARKED.filter(verdict => present.has(verdict)).map(verdict => {
          const mark = markOf(verdict);
          return (
            <span key={verdict ?? "other"} className={classes.legendKey}>
              <svg width={14} height={12} aria-hidden="true">
                <path
                  d={markPath(mark, 7, 6, 4.5)}
                  fill={mark.filled ? mark.colour : "none"}
                  stroke={mark.colour}
                  strokeWidth={1.5}
                />
              </svg>
              {verdict === null ? "another or none" : VERDICTS[verdict].word}
            </span>
          );
        })}
      </span>
      One mark for each head, with equal distances: its verdict against the head before; vertical line:
      standard deviation between boots. Horizontal lines: levels; grey: two spreads around them, where 95 % of
      heads are if nothing changes.{" "}
      {floor ? `Dotted: two noise floors around them; the floor is ${floorText(floor)}. ` : ""}
      {cutsIn(line.series).length > 0 &&
        "Dashed with ◆: the environment changed; levels are not compared across it. "}
      {line.shifts.length > 0 && "Flag: a shift of the level. "}
      Evidence: {EVIDENCE[line.evidence].word}.
    </>
  );
});

interface EventsListProps {
  line: HistoryLineData;
  range: Range;
  onShown(shown: Shown): void;
}

/** Shifts and changes of the environment, each a way to its head. */
const Events = memo(function Events({ line, range, onShown }: EventsListProps) {
  const { series, shifts } = line;
  const cuts = cutsIn(series);
  const select = (index: number) => onShown(selecting(range, index, series.length));
  return (
    <>
      <Section id="shifts" title="Shifts">
        {shifts.length === 0 ? (
          <p className="muted">The level has not shifted.</p>
        ) : (
          <DataTable
            caption="Shifts of this line"
            captionHidden
            columns={LINE_SHIFT_COLUMNS}
            rows={shifts}
            rowKey={of => of.id}
            fixedOrder
            narrow="stack"
          />
        )}
      </Section>
      {cuts.length > 0 && (
        <Section id="environment" title="Changes of the environment">
          <ul className={classes.cuts}>
            {cuts.map(index => {
              const point = series[index] as HistoryPoint;
              return (
                <li key={point.head.id}>
                  <button type="button" className={classes.jump} onClick={() => select(index)}>
                    {headText(point.head, line)}
                  </button>
                  : <span className={classes.long}>{oneLine(point.cut)}</span>
                </li>
              );
            })}
          </ul>
        </Section>
      )}
    </>
  );
});

function PointTable({ line }: { line: HistoryLineData }) {
  const columns = useMemo(
    (): Column<HistoryPoint>[] => [
      { id: "head", header: "head", rowHeader: true, value: of => headText(of.head, line) },
      {
        id: "at",
        header: "measured",
        value: of => of.at,
        text: of => absolute(new Date(of.at)).slice(0, 16),
      },
      {
        id: "value",
        header: "value",
        numeric: true,
        value: of => of.value,
        text: of => valueText(of, line),
      },
      { id: "boots", header: "boots", numeric: true, value: of => of.n },
      {
        id: "effect",
        header: "from the head before",
        numeric: true,
        value: of => of.effect,
        text: of => changeText(of, line),
      },
      { id: "verdict", header: "verdict", value: of => of.verdict && humanize(of.verdict) },
      { id: "cut", header: "environment", wrap: true, value: of => oneLine(of.cut) },
    ],
    [line],
  );
  return (
    <DataTable
      caption={`Heads of ${metricName(line.metric)}`}
      captionHidden
      columns={columns}
      rows={line.series}
      rowKey={of => of.head.id}
    />
  );
}

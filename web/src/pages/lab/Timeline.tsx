import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { timelineQuery } from "@/api/queries";
import { GanttFigure } from "@/figures/GanttFigure";
import { absolute } from "@/lib/time";
import { SelectFilter } from "@/parts/FilterBar";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./LabPage.module.css";
import { earlier, later, SPAN_INFO, SPANS } from "./timeWindow";

const REFRESH_MS = 15_000;
const route = getRouteApi("/lab");
/** Match all search parameters; otherwise links with a subset of them would count as active. */
const EXACT = { exact: true };

/** Gantt chart of runs by device for the window in the URL. */
export function Timeline({ types }: { types: readonly string[] }) {
  const { span, until, type } = route.useSearch();
  const navigate = route.useNavigate();
  const request = useQuery({
    ...timelineQuery({
      hours: SPAN_INFO[span].hours,
      ...(until && { until }),
      ...(type && { device_type: type }),
    }),
    // A past window does not change.
    refetchInterval: until === "" && REFRESH_MS,
  });
  const { data } = request;
  const end = until ? new Date(until) : new Date();
  const last = data?.bars.at(-1);
  return (
    <Section
      id="timeline"
      title="Timeline"
      actions={
        <SelectFilter
          label="Device type"
          value={type}
          from={types}
          onValue={chosen =>
            void navigate({ search: before => ({ ...before, type: chosen }), resetScroll: false })
          }
        />
      }
    >
      <div className={`${classes.window} no-print`}>
        <nav aria-label="Time span" className={classes.spans}>
          {SPANS.map(each => (
            <Link
              key={each}
              from="/lab"
              to="."
              search={before => ({ ...before, span: each })}
              resetScroll={false}
              activeOptions={EXACT}
              aria-current={each === span ? "true" : undefined}
              data-chosen={each === span || undefined}
              className={classes.span}
            >
              {SPAN_INFO[each].word}
            </Link>
          ))}
        </nav>
        <nav aria-label="Time navigation" className={classes.spans}>
          <Link
            from="/lab"
            to="."
            search={before => ({ ...before, until: earlier(end, span) })}
            resetScroll={false}
            activeOptions={EXACT}
            className={classes.span}
          >
            Earlier
          </Link>
          {until !== "" && (
            <>
              <Link
                from="/lab"
                to="."
                search={before => ({ ...before, until: later(end, span, new Date()) })}
                resetScroll={false}
                activeOptions={EXACT}
                className={classes.span}
              >
                Later
              </Link>
              <Link
                from="/lab"
                to="."
                search={before => ({ ...before, until: "" })}
                resetScroll={false}
                activeOptions={EXACT}
                className={classes.span}
              >
                Now
              </Link>
            </>
          )}
        </nav>
        <span className="muted">until {until === "" ? "now" : absolute(end)}</span>
      </div>
      {data ? (
        <div aria-busy={request.isPlaceholderData}>
          <GanttFigure title={`Runs by device, ${SPAN_INFO[span].word}`} timeline={data} />
          {data.bars.length === 0 && <p className="muted">No runs in this period.</p>}
          {data.next && last && (
            <p className={classes.cut} role="status">
              Only the first {data.bars.length} runs are shown, up to <RelativeTime at={last.started_at} />.
              Select a shorter time span or a single device type.
            </p>
          )}
        </div>
      ) : (
        <Skeleton lines={8} height="2rem" />
      )}
    </Section>
  );
}

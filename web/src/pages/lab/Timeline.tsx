import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { timelineQuery } from "@/api/queries";
import { GanttFigure } from "@/figures/GanttFigure";
import { absolute } from "@/lib/time";
import { Choice } from "@/parts/FilterBar";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./LabPage.module.css";
import { NotRead } from "./NotRead";
import { earlier, later, SPAN_LOOK, SPANS } from "./window";

const LOOK_AGAIN_MS = 15_000;
const route = getRouteApi("/lab");
/** A link with fewer parameters than the address leads elsewhere: it is not where one is. */
const EXACT = { exact: true };

/** What ran where, in the window that the address names. */
export function Timeline({ types }: { types: readonly string[] }) {
  const { span, until, type } = route.useSearch();
  const navigate = route.useNavigate();
  const asked = useQuery({
    ...timelineQuery({
      hours: SPAN_LOOK[span].hours,
      ...(until && { until }),
      ...(type && { device_type: type }),
    }),
    // The past stays what it was.
    refetchInterval: until === "" && LOOK_AGAIN_MS,
  });
  const { data } = asked;
  const end = until ? new Date(until) : new Date();
  const last = data?.bars.at(-1);
  return (
    <Section
      id="timeline"
      title="What ran where"
      actions={
        <Choice
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
        <nav aria-label="Length of the window" className={classes.spans}>
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
              {SPAN_LOOK[each].word}
            </Link>
          ))}
        </nav>
        <nav aria-label="Move the window" className={classes.spans}>
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
        <span className="muted">up to {until === "" ? "now" : absolute(end)}</span>
      </div>
      {data ? (
        <div aria-busy={asked.isPlaceholderData}>
          <GanttFigure title={`Devices at work during ${SPAN_LOOK[span].word}`} timeline={data} />
          {data.bars.length === 0 && <p className="muted">No run had a device in this time.</p>}
          {data.next && last && (
            <p className={classes.cut} role="status">
              Only the first {data.bars.length} are drawn, up to <RelativeTime at={last.started_at} />: choose
              a shorter window or one device type.
            </p>
          )}
        </div>
      ) : asked.error ? (
        <NotRead what="The timeline" error={asked.error} again={() => void asked.refetch()} />
      ) : (
        <Skeleton lines={8} height="2rem" />
      )}
    </Section>
  );
}

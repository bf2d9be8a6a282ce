/** A shift of a line's level: both sides, the figures, and what became of it. */
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { historyLineQuery, historyShiftQuery } from "@/api/historyQueries";
import { useHasScope, useSession } from "@/api/session";
import type { HeadRef, HistoryLineData, HistoryShift, ShiftBisection } from "@/api/types";
import { watchQuery } from "@/api/watchQueries";
import { metricName } from "@/lib/numbers";
import { clean, humanize, oneLine } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { Facts } from "@/parts/Facts";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { Badge, VerdictBadge } from "@/parts/VerdictBadge";
import { BisectLink } from "../bisections/BisectLink";
import { goesOn, isFound } from "../bisections/labels";
import classes from "./history.module.css";
import { LineChart } from "./LineChart";
import {
  cellText,
  changeOf,
  headText,
  measuredText,
  SOURCE_MEANING,
  STATE_MEANING,
  shortCommit,
  suspectedText,
} from "./labels";
import { valueText } from "./points";
import { ShiftForm } from "./ShiftForm";
import { lowerBound, type Shown, widened } from "./view";

/** Poll while its confirmation may be running: there are no events for shifts. */
const REFRESH_MS = 30_000;
/** Its confirmation, or the search for its commit, may be running. */
const isUnderway = ({ state, bisection }: HistoryShift) =>
  state === "new" || (bisection != null && goesOn(bisection));
/** Heads shown on each side. */
const AROUND = 20;
const route = getRouteApi("/history/shifts/$id");

export function ShiftPage() {
  const { id } = route.useParams();
  const session = useSession();
  const { data: shift } = useSuspenseQuery({
    ...historyShiftQuery(id),
    refetchInterval: query => (query.state.data && isUnderway(query.state.data) ? REFRESH_MS : false),
  });
  const { line } = shift;
  const user = session?.user;
  const maintains = user?.scopes.includes("maintain") ?? false;
  return (
    <Page
      title={`${metricName(line.metric)} ${changeOf(shift).word} on ${line.device_type}`}
      trail={
        <>
          <Link to="/history">History</Link> /{" "}
          <Link to="/history/$id" params={{ id: line.id }} search={{ at: shift.after.id }}>
            {metricName(line.metric)} on {line.device_type}
          </Link>{" "}
          / shift {shift.id}
        </>
      }
      lead={`${line.tree} ${line.ref}: ${cellText(line)}.`}
    >
      <ShiftFacts of={shift} />
      <Around shift={shift} />
      {maintains && user ? (
        <Section id="change" title="What became of it">
          <ShiftForm key={`${shift.id} ${shift.changed_at}`} shift={shift} user={user.name} />
        </Section>
      ) : (
        shift.notes && (
          <Section id="notes" title="Notes">
            <p className={classes.notes}>{clean(shift.notes)}</p>
          </Section>
        )
      )}
    </Page>
  );
}

function ShiftFacts({ of }: { of: HistoryShift }) {
  const measured = measuredText(of);
  return (
    <Facts
      of={{
        State: (
          <>
            <StateBadge state={of.state} /> <span className="muted">{STATE_MEANING[of.state]}</span>
          </>
        ),
        Reason: of.reason && oneLine(of.reason),
        Change: <Badge {...changeOf(of)} />,
        Suspected: (
          <>
            {suspectedText(of)} <span className="muted">by {SOURCE_MEANING[of.source]}</span>
          </>
        ),
        "Measured again": (
          <>
            {measured ? (
              <>
                {measured} <VerdictBadge verdict={of.verdict} />
              </>
            ) : (
              <span className="muted">not yet</span>
            )}
            {of.submission_id !== null && (
              <>
                {" "}
                in{" "}
                <Link to="/submissions/$id" params={{ id: of.submission_id }}>
                  submission {of.submission_id}
                </Link>
                {measured && (
                  <>
                    {" ("}
                    <Link to="/r/$id" params={{ id: of.submission_id }}>
                      report
                    </Link>
                    {")"}
                  </>
                )}
              </>
            )}
          </>
        ),
        Commit: <Commit of={of} />,
        Owner: of.owner || <span className="muted">nobody</span>,
        Opened: <RelativeTime at={of.created_at} />,
        "Paired run ended": of.decided_at && <RelativeTime at={of.decided_at} />,
        Changed: of.changed_by && (
          <>
            <RelativeTime at={of.changed_at} /> by {of.changed_by}
          </>
        ),
      }}
    />
  );
}

/** The commit, or a link to the form that searches for it if it was not found by itself. */
function Commit({ of }: { of: HistoryShift }) {
  const { line, bisection } = of;
  const ended = bisection ? !goesOn(bisection) && !isFound(bisection) : of.state !== "new";
  const may = useHasScope();
  const { data: watched } = useQuery({
    ...watchQuery(line.tree),
    enabled: ended && may("submit"),
    retry: false,
  });
  // Commits of a repository of its own are not in the tree's.
  const spec = watched?.spec;
  const tree = spec?.kind === "tree" && !spec.url ? spec.tree : null;
  return (
    <>
      {bisection ? <BisectionText of={bisection} /> : <span className="muted">not searched</span>}
      {ended && tree && (
        <>
          {" "}
          <BisectLink
            of={{
              tree,
              good: of.before.commit,
              bad: of.after.commit,
              ref: of.after.name,
              plan: line.plan,
              type: line.device_type,
              scenario: line.scenario,
              setting: line.setting,
              metric: line.metric,
              submission: of.submission_id,
            }}
          />
        </>
      )}
    </>
  );
}

/** The commit that was found, or how far the search is. */
function BisectionText({ of }: { of: ShiftBisection }) {
  return (
    <>
      {isFound(of) && of.culprit !== null ? (
        <>
          <code>
            {of.first !== null && of.first !== of.culprit && `${shortCommit(of.first)}..`}
            {shortCommit(of.culprit)}
          </code>{" "}
          {oneLine(of.subject)}
          {", by "}
        </>
      ) : (
        <>
          <StateBadge state={of.state} /> in{" "}
        </>
      )}
      <Link to="/bisections/$id" params={{ id: of.id }}>
        bisection {of.id}
      </Link>
    </>
  );
}

/** The heads around the shift, and its two sides. */
function Around({ shift }: { shift: HistoryShift }) {
  const { data: line } = useQuery(historyLineQuery(shift.line.id));
  return (
    <Section
      id="sides"
      title="Both sides"
      actions={
        <Link to="/history/$id" params={{ id: shift.line.id }} search={{ at: shift.after.id }}>
          Open the whole line
        </Link>
      }
    >
      {line ? <ShiftChart line={line} shift={shift} /> : <Skeleton lines={1} height="360px" />}
      <Facts
        of={{
          "Last with the old level": <Side head={shift.before} shift={shift} line={line} />,
          "First with the new level": <Side head={shift.after} shift={shift} line={line} />,
        }}
      />
    </Section>
  );
}

/** The chart of the line without its other shifts, at first with the heads around the shift. */
function ShiftChart({ line, shift }: { line: HistoryLineData; shift: HistoryShift }) {
  const drawn = useMemo(() => ({ ...line, shifts: [shift] }), [line, shift]);
  const [shown, setShown] = useState(() => around(line, shift));
  const places = useMemo(() => [indexOf(line, shift)], [line, shift]);
  const onShown = useCallback((next: Shown) => setShown(next), []);
  return <LineChart line={drawn} floor={null} shown={shown} places={places} onShown={onShown} />;
}

interface SideProps {
  head: HeadRef;
  shift: HistoryShift;
  line: HistoryLineData | undefined;
}

function Side({ head, shift, line }: SideProps) {
  const point = line?.series.find(each => each.head.id === head.id);
  return (
    <>
      {head.name !== shift.line.ref && <strong>{head.name} </strong>}
      <code className={classes.long}>{head.commit}</code>{" "}
      <CopyButton text={head.commit} name={`Copy the commit ${headText(head, shift.line)}`} />
      {point && (
        <span className={classes.side}>
          {valueText(point, shift.line)}
          {point.verdict && ` (${humanize(point.verdict)})`} in{" "}
          <Link to="/submissions/$id" params={{ id: point.submission_id }} search={{ run: point.run_id }}>
            submission {point.submission_id}
          </Link>
        </span>
      )}
    </>
  );
}

function indexOf({ series }: HistoryLineData, { after }: Pick<HistoryShift, "after">): number {
  return lowerBound(
    series.map(point => point.head.id),
    after.id,
  );
}

/** Return what shows up to AROUND points before and after a shift. */
export function around(line: HistoryLineData, shift: Pick<HistoryShift, "after">): Shown {
  const index = indexOf(line, shift);
  const total = line.series.length;
  const range = { start: Math.max(0, index - AROUND), end: Math.min(total, index + AROUND) };
  return { range: widened(range, total), at: null };
}

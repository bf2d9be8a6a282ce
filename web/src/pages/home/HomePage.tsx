/** The field for a series; results by topology; what is running, waits, is quarantined and has shifted. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { FormEvent } from "react";
import { historyShiftsQuery } from "@/api/historyQueries";
import { devicesQuery, deviceTypesQuery, queueQuery, submissionsQuery } from "@/api/queries";
import type { HistoryShift, SubmissionSummary } from "@/api/types";
import { Button } from "@/kit";
import { ALL_EMULATED, countsText, queueText, sumOf } from "@/lib/devices";
import { count, metricName, signed } from "@/lib/numbers";
import { recogniseSeries } from "@/lib/series";
import { oneLine } from "@/lib/words";
import { Boundary } from "@/parts/Boundary";
import { OutOfService } from "@/parts/OutOfService";
import { Page, Section } from "@/parts/Page";
import { Progress } from "@/parts/Progress";
import { useNow } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./HomePage.module.css";
import { Results } from "./Results";

const RUNNING = 5;
const SHIFTS = 3;
const REASONS = 4;
const REFRESH_MS = 15_000;
const HOUR_MS = 3_600_000;

export function HomePage() {
  return (
    <Page
      title="wqlab"
      heading="Is your workqueue or scheduler patch better, and where?"
      lead="The lab boots your kernel and its baseline alternately on the same device, and says for each CPU topology: better, worse, the same, or can't tell yet, and why."
    >
      <SeriesField />
      <div className={classes.columns}>
        <Boundary>
          <Results />
        </Boundary>
        <div className={classes.side}>
          <Boundary>
            <Running />
          </Boundary>
          <Boundary>
            <Lab />
          </Boundary>
          <Boundary>
            <Shifts />
          </Boundary>
        </div>
      </div>
    </Page>
  );
}

/** Opens the form with what was pasted. */
function SeriesField() {
  const navigate = useNavigate();
  const open = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("series"));
    void navigate({ to: "/submit", search: recogniseSeries(text) });
  };
  return (
    <form className={classes.series} onSubmit={open}>
      <input
        name="series"
        aria-label="Series"
        placeholder="URL of lore or Patchwork, Message-ID, or git URL and branch"
        autoComplete="off"
        spellCheck={false}
        required
      />
      <Button type="submit">Continue</Button>
      <span>
        or{" "}
        <Link to="/submit" search={{ source: "mbox" }}>
          choose an mbox
        </Link>
      </span>
    </form>
  );
}

function Running() {
  const { data } = useQuery({
    ...submissionsQuery({ active: true, limit: RUNNING }),
    refetchInterval: REFRESH_MS,
  });
  if (!data) return <Skeleton lines={2} height="2rem" />;
  if (data.items.length === 0) return null;
  return (
    <Section id="running" title="In progress">
      <ul className={classes.list}>
        {data.items.map(each => (
          <li key={each.id} className={classes.entry}>
            <Link to="/submissions/$id" params={{ id: each.id }}>
              {titleOf(each)}
            </Link>
            <Progress done={each.done_boots} total={each.total_boots} noun="boots">
              {each.state}
            </Progress>
          </li>
        ))}
      </ul>
      {data.total > data.items.length && (
        <Link to="/submissions" search={{ state: "unfinished" }}>
          {count(data.total - data.items.length, "more", "more")}
        </Link>
      )}
    </Section>
  );
}

/** Counts, queue and why devices cannot be used, in one box. */
function Lab() {
  const { data: types } = useQuery({ ...deviceTypesQuery, refetchInterval: REFRESH_MS });
  const { data: devices } = useQuery({ ...devicesQuery, refetchInterval: REFRESH_MS });
  const { data: queue } = useQuery({ ...queueQuery, refetchInterval: REFRESH_MS });
  if (!types || !devices || !queue) return <Skeleton lines={5} />;
  const away = devices.filter(each => each.away !== "").length;
  const kinds = types.filter(type => type.devices.length > 0);
  return (
    <Section id="lab" title="Lab" actions={<Link to="/lab">Devices and queue</Link>}>
      <div className={classes.box}>
        <p>
          <strong>{countsText(sumOf(types.map(type => type.device_counts)))}</strong>
          {away > 0 && `, ${away} unavailable`}
        </p>
        <p>{queueText(queue)}</p>
        {kinds.length > 0 && kinds.every(type => type.emulated) && <p className="muted">{ALL_EMULATED}</p>}
        <OutOfService devices={devices} most={REASONS} />
      </div>
    </Section>
  );
}

/** Shifts of the history in the last seven days. */
function Shifts() {
  const hour = Math.floor(useNow(HOUR_MS).getTime() / HOUR_MS) * HOUR_MS;
  const { data } = useQuery(
    historyShiftsQuery({ limit: SHIFTS, since: new Date(hour - 7 * 24 * HOUR_MS).toISOString() }),
  );
  if (!data || data.items.length === 0) return null;
  return (
    <Section id="shifts" title="Shifted this week" actions={<Link to="/history">Trends</Link>}>
      <ul className={classes.list}>
        {data.items.map(of => (
          <li key={of.id} className={classes.entry}>
            <span>
              <Link to="/history/shifts/$id" params={{ id: of.id }}>
                {metricName(of.line.metric)}
              </Link>{" "}
              {effectOf(of)}
            </span>
            <span className="muted">
              {of.line.tree}, {of.line.device_type} <StateBadge state={of.state} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The measured effect, else the suspected one. */
function effectOf({ effect, suspected_effect, line }: HistoryShift): string {
  return `${signed(effect ?? suspected_effect)} ${line.effect_unit}`;
}

function titleOf(each: SubmissionSummary): string {
  return oneLine(each.title) || `Submission ${each.id}`;
}

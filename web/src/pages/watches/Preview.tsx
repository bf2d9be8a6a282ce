/** What the watch of a list would have taken in the last days: as a section of its page, and its first lines in a dialog. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useId, useState } from "react";
import { useHasScope } from "@/api/session";
import type { ListWatch, PreviewedSeries, PreviewedSeriesList, WatchPreview } from "@/api/types";
import { previewQuery } from "@/api/watchQueries";
import { Button } from "@/kit";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { FailureCard } from "@/parts/FailureCard";
import { FormError } from "@/parts/FormError";
import { Section } from "@/parts/Page";
import { Skeleton } from "@/parts/Skeleton";
import { Subject, whyText } from "./Decisions";
import { reasonCounts } from "./labels";
import { DAYS, DAYS_MAX } from "./search";
import classes from "./watches.module.css";

const route = getRouteApi("/watches/$name");

/** Section of the page of a list's watch. A worker reads the list only when somebody asks. */
export function Preview({ spec }: { spec: ListWatch }) {
  const { days } = route.useSearch();
  const navigate = useNavigate({ from: "/watches/$name" });
  const may = useHasScope();
  if (!may("submit")) return null;
  return (
    <Section
      id="preview"
      title="What it would have taken"
      lead="The watch as it is, over the mails of the last days. Budget, quota and quiet hours are not considered."
      actions={
        <DaysForm
          days={days ?? DAYS}
          shown={days !== null}
          onDays={chosen =>
            void navigate({
              search: before => ({ ...before, days: chosen }),
              replace: true,
              resetScroll: false,
            })
          }
        />
      }
    >
      {days !== null && (
        <div className={classes.preview}>
          <PreviewOf spec={spec} days={days} />
        </div>
      )}
    </Section>
  );
}

function PreviewOf({ spec, days }: { spec: ListWatch; days: number }) {
  const { data, error, isFetching, refetch } = useQuery(previewQuery(spec, days));
  if (error && !data) return <FormError error={error} />;
  if (data?.state !== "finished") return <Reading preview={data} />;
  return (
    <>
      <PreviewText preview={data} />
      {data.failure && (
        <FailureCard
          failure={data.failure}
          what="read of the list"
          actions={
            <Button size="xs" variant="default" loading={isFetching} onClick={() => void refetch()}>
              Read again
            </Button>
          }
        />
      )}
      {data.found && data.found.series.length > 0 && (
        <DataTable
          caption="Series that it would have taken, or nearly"
          captionHidden
          columns={COLUMNS}
          rows={data.found.series}
          rowKey={of => of.message_id}
          fixedOrder
          narrow="stack"
        />
      )}
    </>
  );
}

interface DaysFormProps {
  days: number;
  /** The preview of this number of days is on the page. */
  shown: boolean;
  onDays(days: number): void;
}

/** The number of days, and the button that asks for their preview. */
export function DaysForm({ days, shown, onDays }: DaysFormProps) {
  const id = useId();
  const [typed, setTyped] = useState(String(days));
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    // The dialog of the switch is inside no other form, but its button must not reach the page's.
    event.stopPropagation();
    onDays(Number(typed));
  };
  return (
    <form className={classes.days} onSubmit={submit}>
      <label htmlFor={id}>Days</label>
      <input
        id={id}
        type="number"
        min={1}
        max={DAYS_MAX}
        step={1}
        required
        value={typed}
        onChange={event => setTyped(event.target.value)}
      />
      <Button type="submit" size="xs" variant="default" disabled={shown && typed === String(days)}>
        Show
      </Button>
    </form>
  );
}

/** While the worker reads. */
export function Reading({ preview }: { preview: WatchPreview | undefined }) {
  return (
    <div className={classes.reading} role="status">
      <p className="muted">
        A worker reads the list
        {preview?.progress ? `: ${oneLine(preview.progress)}` : ". The first time this takes some minutes."}
      </p>
      <Skeleton lines={2} />
    </div>
  );
}

/** A finished preview in sentences: the number of series, their device time, and the others by reason. */
export function PreviewText({ preview }: { preview: WatchPreview }) {
  const { found, days, spec } = preview;
  if (!found) return null;
  const others = reasonCounts(found.not_taken);
  return (
    <div className={classes.sentences}>
      <p>
        <span className={classes.headline}>
          {count(found.taken, "series", "series")}, {count(Math.round(found.minutes), "minute")} of devices
        </span>{" "}
        in the last {count(days, "day")}: {count(Math.round(found.minutes / days), "minute")} a day, of a
        budget of {spec.minutes_a_day}. <Looked found={found} />
      </p>
      {others && <p className="muted">Not taken: {others}.</p>}
      {(found.notes ?? []).map(note => (
        <p key={note} className="muted">
          {oneLine(note)}
        </p>
      ))}
    </div>
  );
}

function Looked({ found }: { found: PreviewedSeriesList }) {
  return (
    <span className="muted">
      {found.is_complete
        ? `${count(found.mails, "mail")} with patches were read.`
        : `The list has more mails than the ${found.mails} that were read: the last ones are missing. Choose fewer days.`}
    </span>
  );
}

const COLUMNS: Column<PreviewedSeries>[] = [
  {
    id: "subject",
    header: "Series",
    rowHeader: true,
    value: of => oneLine(of.subject),
    cell: of => <Subject of={of} />,
  },
  {
    id: "author",
    header: "Author",
    wrap: true,
    value: of => oneLine(of.author),
    cell: of => <span className={classes.long}>{oneLine(of.author)}</span>,
  },
  { id: "revision", header: "Revision", value: of => `v${of.revision}` },
  { id: "patches", header: "Patches", numeric: true, value: of => of.patches },
  { id: "taken", header: "Taken", value: of => (of.taken ? "yes" : "no") },
  {
    id: "why",
    header: "Targets, or reason",
    wrap: true,
    value: whyText,
    cell: of => <span className={classes.long}>{whyText(of)}</span>,
  },
  {
    id: "minutes",
    header: "Minutes",
    hint: "Device time that the quote of a submission predicts today",
    numeric: true,
    value: of => of.minutes,
    text: of => (of.minutes === null ? "" : String(Math.round(of.minutes))),
  },
  { id: "arrived", header: "Arrived", value: of => of.archived_at, time: true },
];

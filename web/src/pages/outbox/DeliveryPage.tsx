import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { deliveryQuery } from "@/api/outboxQueries";
import { archivesQuery } from "@/api/queries";
import type { DeliveryAttemptView, DeliveryDetail, OutgoingMail } from "@/api/types";
import { absolute, roughDuration } from "@/lib/time";
import { clean, humanize, oneLine } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { type Column, DataTable } from "@/parts/DataTable";
import { Facts } from "@/parts/Facts";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Scroll } from "@/parts/Scroll";
import { StateBadge } from "@/parts/StateBadge";
import { NextAttempt, titleOf } from "./columns";
import { Decisions } from "./Decisions";
import { eventText, OUTCOME_WORDS, STATE_MEANING } from "./labels";
import { MailForm } from "./MailForm";
import { archivePage } from "./mail";
import classes from "./outbox.module.css";

/** Poll while it waits to be sent: there are no events for deliveries. */
const REFRESH_MS = 5_000;
const route = getRouteApi("/deliveries/$id");

export function DeliveryPage() {
  const { id } = route.useParams();
  const { data: delivery } = useSuspenseQuery({
    ...deliveryQuery(id),
    refetchInterval: query => (query.state.data?.state === "waiting" ? REFRESH_MS : false),
  });
  const [editing, setEditing] = useState(false);
  const { mail } = delivery;
  const edits = editing && mail !== null && delivery.state === "waiting_for_review";
  return (
    <Page
      title={titleOf(delivery)}
      trail={
        <>
          <Link to="/deliveries">Deliveries</Link> / {humanize(delivery.kind)} {delivery.id}
        </>
      }
      actions={<Decisions of={delivery} editing={edits} onEdit={() => setEditing(true)} />}
    >
      <DeliveryFacts of={delivery} />
      {edits ? (
        <Section id="edit" title="Change the mail">
          <MailForm id={delivery.id} mail={mail} onDone={() => setEditing(false)} />
        </Section>
      ) : mail ? (
        <MailText of={mail} state={delivery.state} />
      ) : (
        <PostedText text={delivery.body} />
      )}
      <Attempts of={delivery.attempts ?? []} />
    </Page>
  );
}

function DeliveryFacts({ of }: { of: DeliveryDetail }) {
  return (
    <Facts
      of={{
        State: (
          <>
            <StateBadge state={of.state} /> <span className="muted">{STATE_MEANING[of.state]}</span>
          </>
        ),
        Reason: of.reason && oneLine(of.reason),
        "Decided by": of.decided_by && of.decided_by,
        What: (
          <>
            {humanize(of.kind)}, {eventText(of)}
            {of.submission_id !== null && (
              <>
                {" "}
                about{" "}
                <Link to="/submissions/$id" params={{ id: of.submission_id }}>
                  submission {of.submission_id}
                </Link>{" "}
                (
                <Link to="/r/$id" params={{ id: of.submission_id }}>
                  report
                </Link>
                )
              </>
            )}
          </>
        ),
        To: of.kind !== "mail" && (
          <>
            <code>{oneLine(of.destination)}</code>
            {of.webhook_id !== null && (
              <>
                {" "}
                (
                <Link to="/deliveries" search={{ webhook: of.webhook_id }}>
                  webhook {of.webhook_id}
                </Link>
                )
              </>
            )}
          </>
        ),
        Id: of.kind !== "mail" && (
          <span title="The same in every attempt, so that the receiver recognises a repetition">
            <code>{of.message_id}</code>
          </span>
        ),
        Created: <RelativeTime at={of.created_at} />,
        "Next attempt": of.next_at && <NextAttempt at={of.next_at} />,
        Ended: of.finished_at && <RelativeTime at={of.finished_at} />,
      }}
    />
  );
}

/** A mail as it is sent, or was. */
function MailText({ of, state }: { of: OutgoingMail; state: DeliveryDetail["state"] }) {
  const { data: archives } = useQuery(archivesQuery);
  const page = of.in_reply_to ? archivePage(archives ?? [], of.in_reply_to, [...of.to, ...of.cc]) : null;
  return (
    <Section
      id="mail"
      title={state === "delivered" ? "The mail" : "The mail as it will be sent"}
      actions={<CopyButton label="Copy" name="Copy the mail's text" text={of.body} />}
    >
      <div className={classes.mail}>
        <dl className={classes.headers}>
          <Header name="From" value={of.sender} />
          <Header name="To" value={of.to.join(", ")} />
          {of.cc.length > 0 && <Header name="Cc" value={of.cc.join(", ")} />}
          <Header name="Subject" value={of.subject} />
          <Header name="Date" value={absolute(new Date(of.date))} />
          <Header name="Message-ID" value={`<${of.message_id}>`} />
          {of.in_reply_to && (
            <>
              <dt>In-Reply-To:</dt>
              <dd>
                {page ? <a href={page}>{`<${oneLine(of.in_reply_to)}>`}</a> : `<${oneLine(of.in_reply_to)}>`}
              </dd>
            </>
          )}
        </dl>
        <Scroll name="Text of the mail" className={classes.body}>
          <pre>{clean(of.body)}</pre>
        </Scroll>
      </div>
    </Section>
  );
}

function Header({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}:</dt>
      <dd>{oneLine(value)}</dd>
    </>
  );
}

/** The JSON that is posted, indented. The signature is over the text as it is stored. */
function PostedText({ text }: { text: string }) {
  return (
    <Section
      id="body"
      title="Body"
      actions={<CopyButton label="Copy" name="Copy the body as it is posted" text={text} />}
    >
      <Scroll name="Body" className={classes.mail}>
        <div className={classes.body}>
          <pre>{clean(indented(text))}</pre>
        </div>
      </Scroll>
    </Section>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Attempts({ of }: { of: readonly DeliveryAttemptView[] }) {
  return (
    <Section id="attempts" title="Attempts">
      {of.length === 0 ? (
        <p className="muted">It was not sent yet.</p>
      ) : (
        <DataTable
          caption="Attempts"
          captionHidden
          copyable={false}
          columns={ATTEMPT_COLUMNS}
          rows={of}
          rowKey={each => each.number}
          fixedOrder
          narrow="stack"
        />
      )}
    </Section>
  );
}

const ATTEMPT_COLUMNS: Column<DeliveryAttemptView>[] = [
  { id: "number", header: "Attempt", value: of => of.number },
  {
    id: "started",
    header: "Time",
    value: of => of.started_at,
    cell: of => (
      <time className="nowrap" dateTime={of.started_at}>
        {absolute(new Date(of.started_at))}
      </time>
    ),
  },
  {
    id: "took",
    header: "Took",
    numeric: true,
    value: of => (of.finished_at ? seconds(of.started_at, of.finished_at) : null),
    cell: of => (of.finished_at ? roughDuration(seconds(of.started_at, of.finished_at)) : ""),
  },
  {
    id: "outcome",
    header: "Outcome",
    value: of => (of.outcome ? OUTCOME_WORDS[of.outcome] : "being sent"),
  },
  {
    id: "status",
    header: "Status",
    numeric: true,
    hint: "Status of the HTTP or SMTP answer",
    value: of => of.status,
  },
  {
    id: "problem",
    header: "Problem",
    wrap: true,
    value: of => of.problem,
    cell: of => <span className={classes.long}>{oneLine(of.problem)}</span>,
  },
  {
    id: "answer",
    header: "Answer",
    wrap: true,
    hint: "Beginning of what the receiver said",
    value: of => of.answer,
    cell: of => of.answer && <code className={classes.long}>{oneLine(of.answer)}</code>,
  },
];

function seconds(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

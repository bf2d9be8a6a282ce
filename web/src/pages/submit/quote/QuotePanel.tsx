import { useEffect, useRef } from "react";
import type { DetectableEffect, Quote, QuoteBasis, SubmissionRequest, TargetQuote } from "@/api/types";
import { count, number } from "@/lib/numbers";
import { rough } from "@/lib/time";
import { oneLine } from "@/lib/words";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { announce } from "@/parts/LiveRegion";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./QuotePanel.module.css";
import type { LiveQuote } from "./useQuote";

interface QuoteProps {
  live: LiveQuote;
  request: SubmissionRequest;
}

/** What the request would cost the lab and when it would be done, as the server sees it now: the sums. */
export function QuoteSums({ live, request }: QuoteProps) {
  const { quote, current, visitor, error, mistakes } = live;
  const asking = request.targets.length > 0 && !visitor && !error && !current;
  useAnnounced(live);
  return (
    <section className={classes.quote} aria-labelledby="quote-title" aria-busy={asking}>
      <h2 id="quote-title">If it were submitted now</h2>
      {visitor ? (
        <p className={classes.fine}>
          Once you are signed in: the time it takes, its place in the queue, when the report would be there
          and the smallest difference it can find. What you fill in before stays.
        </p>
      ) : request.targets.length === 0 ? (
        <p className={classes.fine}>
          Choose a plan and a device type: the time it takes, its place in the queue and the smallest
          difference it can find appear here.
        </p>
      ) : quote ? (
        <div className={classes.content} data-stale={!current || undefined}>
          <Sums quote={quote} />
          {notesOfAll(quote).map(note => (
            <Note key={note} text={note} />
          ))}
        </div>
      ) : error ? (
        <p className={classes.fine}>
          {mistakes.length > 0
            ? "There is no quote until what is marked in the form is mended."
            : `There is no quote: ${error.message}`}
        </p>
      ) : (
        <p className={classes.fine}>Asking the lab …</p>
      )}
    </section>
  );
}

/** The same, target by target. */
export function QuoteTargets({ live, request }: QuoteProps) {
  const { quote, current } = live;
  if (!quote || request.targets.length === 0 || quote.targets.length === 0) return null;
  const said = notesOfAll(quote);
  return (
    <ul className={classes.targets} aria-label="Quote for each target" data-stale={!current || undefined}>
      {quote.targets.map(target => (
        <li key={`${target.plan}@${target.device_type}`}>
          <Target of={target} at={quote.at} notes={target.notes.filter(note => !said.includes(note))} />
        </li>
      ))}
    </ul>
  );
}

/** What is said of every target is said once. */
function notesOfAll({ targets }: Quote): string[] {
  return (targets[0]?.notes ?? []).filter(note => targets.every(target => target.notes.includes(note)));
}

function Note({ text }: { text: string }) {
  return <p className={classes.note}>{oneLine(text)}</p>;
}

function Sums({ quote }: { quote: Quote }) {
  const kernels = quote.builds.reduce((sum, build) => sum + build.kernels, 0);
  return (
    <dl className={classes.sums}>
      <div>
        <dt>{weakest(quote) === "planned" ? "Report by" : "Report"}</dt>
        <dd>{quote.ends_at ? <When at={quote.ends_at} now={quote.at} /> : <Unknown />}</dd>
      </div>
      <div>
        <dt>Device time</dt>
        <dd>
          <Seconds s={quote.device_s} basis={weakest(quote)} />
        </dd>
      </div>
      <div>
        <dt>{kernels === 1 ? "Kernel" : `${kernels} kernels`}</dt>
        <dd title="Less when the lab has built the same before">
          {quote.build_s == null ? (
            <Unknown />
          ) : quote.build_s < 1 ? (
            "built already"
          ) : (
            `≤ ${rough(quote.build_s)}`
          )}
        </dd>
      </div>
    </dl>
  );
}

/** Of the devices' time alone: the quote's own basis is that of the kernels too. */
function weakest({ targets }: Quote): QuoteBasis {
  return targets.some(target => target.basis === "planned") ? "planned" : "measured";
}

const Unknown = () => (
  <span className={classes.unknown} title="The lab has nothing to estimate it from">
    not known
  </span>
);

/** A time in what is still to come; what would begin at once does. */
function When({ at, now }: { at: string; now: string }) {
  if (Date.parse(at) - Date.parse(now) < 10_000) return <>at once</>;
  return <RelativeTime at={at} />;
}

function Target({ of, at, notes }: { of: TargetQuote; at: string; notes: readonly string[] }) {
  return (
    <>
      <h3 className={classes.target}>
        {of.plan} <span className="muted">on</span> {of.device_type}
      </h3>
      <dl className={classes.facts}>
        <dt>Takes</dt>
        <dd>
          <Seconds s={of.device_s} basis={of.basis} />
          <span className="muted">
            {" "}
            for {count(of.boots, "boot")} in {count(of.blocks, "block")}
            {of.settings > 1 && `, ${of.settings} settings each`}
          </span>
        </dd>
        <dt>Queue</dt>
        <dd>
          {ordinal(of.queue_position)}
          <span className="muted">
            {of.ahead_runs === 0
              ? `, ${of.units.good > 0 ? `${count(of.units.good, "device")} free` : "no device is free"}`
              : `, ${count(of.ahead_runs, "run")} with ${count(of.ahead_boots, "boot")} ahead`}
          </span>
        </dd>
        <dt>From, to</dt>
        <dd>
          {of.starts_at && of.ends_at ? (
            <>
              <When at={of.starts_at} now={at} />, <When at={of.ends_at} now={at} />
            </>
          ) : (
            <Unknown />
          )}
        </dd>
        {of.detectable && (
          <>
            <dt>Can show</dt>
            <dd>
              <Detectable of={of.detectable} />
            </dd>
          </>
        )}
      </dl>
      {notes.map(note => (
        <Note key={note} text={note} />
      ))}
      <details className={classes.basis}>
        <summary>
          Basis: {of.basis === "measured" ? `measured, ${count(of.measured_boots, "boot")}` : of.basis}
        </summary>
        <p>Time: {oneLine(of.basis_text)}.</p>
        {of.detectable && <p>Difference: {oneLine(of.detectable.why)}.</p>}
      </details>
    </>
  );
}

/** A bound where nothing was timed: the plan's own times and limits. */
function Seconds({ s, basis }: { s: number | null; basis: QuoteBasis }) {
  if (s == null) return <Unknown />;
  return <>{basis === "planned" ? `≤ ${rough(s)}` : rough(s)}</>;
}

/** The smallest difference that so many blocks can find, and what would be worth finding. */
function Detectable({ of }: { of: DetectableEffect }) {
  const unit = of.scale === "ratio" ? "%" : of.unit === "%" ? "points" : of.unit;
  return (
    <>
      {of.effect != null ? (
        <>
          {number(of.effect, of.effect < 10 ? 2 : 1)} {unit} of <code>{of.metric}</code>
        </>
      ) : (
        <>
          {of.exact ? "any difference in" : "not known for"} <code>{of.metric}</code>
        </>
      )}
      {of.delta != null && (
        <span className="muted">
          {" "}
          (worth attention from {of.delta} {unit})
        </span>
      )}{" "}
      <EvidenceMark evidence={of.evidence} />
    </>
  );
}

function ordinal(place: number): string {
  const [ones, tens] = [place % 10, place % 100];
  const ending =
    tens >= 11 && tens <= 13 ? "th" : ones === 1 ? "st" : ones === 2 ? "nd" : ones === 3 ? "rd" : "th";
  return `${place}${ending}`;
}

/** Says a new quote once to those who do not see it; not when the same request is merely asked about again. */
function useAnnounced({ quote, current, key }: LiveQuote) {
  const said = useRef("");
  useEffect(() => {
    if (!quote || !current || said.current === key) return;
    said.current = key;
    if (quote.device_s != null) announce(`Quote: ${rough(quote.device_s)} of device time.`);
  }, [quote, current, key]);
}

import { useEffect, useRef } from "react";
import type {
  DetectableEffect,
  Quota,
  QuotaName,
  Quote,
  QuoteBasis,
  SubmissionRequest,
  TargetQuote,
} from "@/api/types";
import { count, metricName, number } from "@/lib/numbers";
import { roughDuration } from "@/lib/time";
import { oneLine } from "@/lib/words";
import { effectText, floorText } from "@/parts/Canaries";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { announce } from "@/parts/LiveRegion";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./QuotePanel.module.css";
import type { LiveQuote } from "./useQuote";

interface QuoteProps {
  live: LiveQuote;
  request: SubmissionRequest;
}

/** Totals of the server's quote in a line: time of completion, device time and kernel builds. */
export function QuoteSummary({ live, request }: QuoteProps) {
  const { quote, current, signedOut, error, errors } = live;
  const loading = request.targets.length > 0 && !signedOut && !error && !current;
  useQuoteAnnouncement(live);
  return (
    <section className={classes.summary} aria-labelledby="quote-title" aria-busy={loading}>
      <h2 id="quote-title" className="hidden-visually">
        Quote
      </h2>
      {request.targets.length === 0 ? (
        <p>Select what should be measured, and where.</p>
      ) : signedOut ? (
        <p className="fine">Sign in to see how long it takes. Your input is kept.</p>
      ) : quote ? (
        <div data-stale={!current || undefined} className={classes.content}>
          <Sums quote={quote} />
        </div>
      ) : error ? (
        <p className="fine">
          {errors.length > 0
            ? "Fix the errors in the form to see a quote."
            : `No quote available: ${error.message}`}
        </p>
      ) : (
        <p className="fine">Loading quote…</p>
      )}
    </section>
  );
}

/** The quote for each target, with what is left of quotas. */
export function QuoteTargets({ live, request }: QuoteProps) {
  const { quote, current } = live;
  if (!quote || request.targets.length === 0) return null;
  const shared = sharedNotes(quote);
  return (
    <details className={classes.all}>
      <summary>Time and smallest difference of each target</summary>
      <Quotas quotas={quote.quotas} />
      {shared.map(note => (
        <Note key={note} text={note} />
      ))}
      <ul className={classes.targets} aria-label="Quote for each target" data-stale={!current || undefined}>
        {quote.targets.map(target => (
          <li key={`${target.plan}@${target.device_type}`}>
            <Target of={target} at={quote.at} notes={target.notes.filter(note => !shared.includes(note))} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Return the notes shared by all targets. */
function sharedNotes({ targets }: Quote): string[] {
  return (targets[0]?.notes ?? []).filter(note => targets.every(target => target.notes.includes(note)));
}

function Note({ text }: { text: string }) {
  return <p className={classes.note}>{oneLine(text)}</p>;
}

function Sums({ quote }: { quote: Quote }) {
  const kernels = quote.builds.reduce((sum, build) => sum + build.kernels, 0);
  const links = quote.builds.reduce((sum, build) => sum + (build.links ?? 0), 0);
  return (
    <dl className={classes.sums}>
      <div>
        <dt>Report</dt>
        <dd>{quote.ends_at ? <When at={quote.ends_at} now={quote.at} /> : <Unknown />}</dd>
      </div>
      <div>
        <dt>Device time</dt>
        <dd>
          <Seconds s={quote.device_s} basis={weakest(quote)} />
          {quote.expected_device_s != null && (
            <span className="muted">
              {" "}
              at most; {roughDuration(quote.expected_device_s)} without a difference
            </span>
          )}
        </dd>
      </div>
      <div>
        <dt>{kernels === 1 ? "Kernel" : `${kernels} kernels`}</dt>
        <dd title="Shorter if the lab has built the same kernel before">
          {quote.build_s == null ? (
            <Unknown />
          ) : quote.build_s < 1 ? (
            "already built"
          ) : (
            `≤ ${roughDuration(quote.build_s)}`
          )}
          {links > 0 && <span className="muted"> with {count(links, "link")} for layouts</span>}
        </dd>
      </div>
    </dl>
  );
}

const LEFT: Record<QuotaName, (left: number) => string> = {
  submissions_waiting: left => `${count(left, "submission")} at once`,
  device_minutes: left => `${number(Math.floor(left))} min of device time`,
  build_minutes: left => `${number(Math.floor(left))} min of builds`,
  bytes: left => `${number(Math.floor(left / 1e6))} MB`,
};
const SPENT: Record<QuotaName, string> = {
  submissions_waiting: "unfinished submissions",
  device_minutes: "device time of 24 hours",
  build_minutes: "build time of 24 hours",
  bytes: "stored bytes of 24 hours",
};

/** What is left of the user's quotas; maintainers and administrators have none. */
function Quotas({ quotas }: { quotas: readonly Quota[] }) {
  const left = quotas.filter(quota => quota.left > 0);
  return (
    <>
      {quotas
        .filter(quota => quota.left <= 0)
        .map(quota => (
          <p key={quota.name} className={classes.note}>
            Your quota of {SPENT[quota.name]} is used up
            {quota.available_at && (
              <>
                ; available again <RelativeTime at={quota.available_at} />
              </>
            )}
            .
          </p>
        ))}
      {left.length > 0 && (
        <p className="fine">
          Left of your quotas: {left.map(quota => LEFT[quota.name](quota.left)).join(", ")}.
        </p>
      )}
    </>
  );
}

/** Basis of the device time alone; the quote's own basis includes kernel builds. */
function weakest({ targets }: Quote): QuoteBasis {
  return targets.some(target => target.basis === "planned") ? "planned" : "measured";
}

const Unknown = () => (
  <span className={classes.unknown} title="No data for an estimate">
    unknown
  </span>
);

/** A future time; "now" if it is less than 10 s away. */
function When({ at, now }: { at: string; now: string }) {
  if (Date.parse(at) - Date.parse(now) < 10_000) return <>now</>;
  return <RelativeTime at={at} />;
}

function Target({ of, at, notes }: { of: TargetQuote; at: string; notes: readonly string[] }) {
  return (
    <>
      <h3 className={classes.target}>
        {of.plan} <span className="muted">on</span> {of.device_type}
      </h3>
      <dl className={classes.facts}>
        <dt>Device time</dt>
        <dd>
          <Seconds s={of.device_s} basis={of.basis} />
          <span className="muted">
            {" "}
            for {count(of.boots, "boot")} in {(of.looks ?? []).length > 0 && "at most "}
            {count(of.blocks, "block")}
            {of.expected_blocks != null &&
              `, ${Math.round(of.expected_blocks)} expected without a difference`}
            {of.settings > 1 && `, ${of.settings} settings each`}
          </span>
        </dd>
        <dt>Queue</dt>
        <dd>
          {ordinal(of.queue_position)}
          <span className="muted">
            {of.ahead_runs === 0
              ? `, ${of.device_counts.good > 0 ? `${count(of.device_counts.good, "device")} free` : "no device free"}`
              : `, ${count(of.ahead_runs, "run")} with ${count(of.ahead_boots, "boot")} ahead`}
          </span>
        </dd>
        <dt>Start, end</dt>
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
            <dt>Detectable</dt>
            <dd>
              <Detectable of={of.detectable} />
            </dd>
          </>
        )}
      </dl>
      {notes.map(note => (
        <Note key={note} text={note} />
      ))}
      <details className="fine">
        <summary>
          Basis: {of.basis === "measured" ? `measured, ${count(of.measured_boots, "boot")}` : "a guess"}
        </summary>
        <p>Time: {oneLine(of.basis_text)}.</p>
        {(of.canaries ?? []).map(record => (
          <p key={`${record.device} ${record.kind}`}>
            {oneLine(record.line)}.{" "}
            {record.metrics
              .filter(metric => metric.role === "primary")
              .map(
                metric =>
                  `Noise floor of ${metricName(metric.metric)}: ${floorText(metric)}; found with 6, 8, 10, 16 blocks: ${[6, 8, 10, 16].map(blocks => effectText(metric, blocks)).join(", ")}.`,
              )
              .join(" ")}
          </p>
        ))}
        {of.detectable && <p>Difference: {oneLine(of.detectable.why)}.</p>}
      </details>
    </>
  );
}

/** A duration; "about" marks a guess, if the plan was not measured on the device type. */
function Seconds({ s, basis }: { s: number | null; basis: QuoteBasis }) {
  if (s == null) return <Unknown />;
  return <>{basis === "planned" ? `about ${roughDuration(s)}` : roughDuration(s)}</>;
}

/** Smallest detectable effect with this number of blocks, and the metric's delta. */
function Detectable({ of }: { of: DetectableEffect }) {
  const unit = of.effect_unit;
  return (
    <>
      {of.effect != null ? (
        <>
          {number(of.effect, of.effect < 10 ? 2 : 1)} {unit} of <code>{metricName(of.metric)}</code>
        </>
      ) : (
        <>
          {of.exact ? "any difference in" : "unknown for"} <code>{metricName(of.metric)}</code>
        </>
      )}
      {of.delta != null && (
        <span className="muted">
          {" "}
          (threshold: {of.delta} {unit})
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

/** Announce a new quote to screen readers, once per request. */
function useQuoteAnnouncement({ quote, current, key }: LiveQuote) {
  const announced = useRef("");
  useEffect(() => {
    if (!quote || !current || announced.current === key) return;
    announced.current = key;
    if (quote.device_s != null) announce(`Quote: ${roughDuration(quote.device_s)} of device time.`);
  }, [quote, current, key]);
}

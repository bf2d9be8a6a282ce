import { useEffect, useRef } from "react";
import type { DetectableEffect, Quote, SubmissionRequest, TargetQuote } from "@/api/types";
import { count, number } from "@/lib/numbers";
import { rough } from "@/lib/time";
import { oneLine } from "@/lib/words";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { announce } from "@/parts/LiveRegion";
import { RelativeTime } from "@/parts/RelativeTime";
import classes from "./QuotePanel.module.css";
import type { LiveQuote } from "./useQuote";

/** What the request would cost the lab and when it would be done, as the server sees it now. */
export function QuotePanel({ live, request }: { live: LiveQuote; request: SubmissionRequest }) {
  const { quote, current, error } = live;
  useAnnounced(live);
  return (
    <section
      className={classes.quote}
      aria-labelledby="quote-title"
      aria-busy={request.targets.length > 0 && !current}
    >
      <h2 id="quote-title">If it were submitted now</h2>
      {request.targets.length === 0 ? (
        <p className={classes.fine}>
          Choose a plan and a device type: the time it takes, its place in the queue and the smallest
          difference it can find appear here.
        </p>
      ) : quote ? (
        <div className={classes.content} data-stale={!current || undefined}>
          <Sums quote={quote} />
          <ul className={classes.targets}>
            {quote.targets.map(target => (
              <li key={`${target.plan}@${target.device_type}`}>
                <Target of={target} at={quote.at} />
              </li>
            ))}
          </ul>
        </div>
      ) : error ? (
        <p className={classes.fine}>There is no quote: {error.message}</p>
      ) : (
        <p className={classes.fine}>Asking the lab …</p>
      )}
    </section>
  );
}

function Sums({ quote }: { quote: Quote }) {
  const kernels = quote.builds.reduce((sum, build) => sum + build.kernels, 0);
  return (
    <dl className={classes.sums}>
      <div>
        <dt>Report</dt>
        <dd>{quote.ends_at ? <When at={quote.ends_at} now={quote.at} /> : <Unknown />}</dd>
      </div>
      <div>
        <dt>Board time</dt>
        <dd>{quote.device_s == null ? <Unknown /> : rough(quote.device_s)}</dd>
      </div>
      <div>
        <dt>{kernels === 1 ? "Kernel" : `${kernels} kernels`}</dt>
        <dd title="Less when the lab has built the same before">
          {quote.build_s == null ? <Unknown /> : `≤ ${rough(quote.build_s)}`}
        </dd>
      </div>
    </dl>
  );
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

function Target({ of, at }: { of: TargetQuote; at: string }) {
  return (
    <>
      <h3 className={classes.target}>
        {of.plan} <span className="muted">on</span> {of.device_type}
      </h3>
      <dl className={classes.facts}>
        <dt>Takes</dt>
        <dd>
          {of.device_s == null ? <Unknown /> : rough(of.device_s)}
          {of.boot_s != null && (
            <span className="muted">
              : {count(of.boots, "boot")} in {count(of.blocks, "block")}
              {of.settings > 1 && `, ${of.settings} settings each`}
            </span>
          )}
        </dd>
        <dt>Queue</dt>
        <dd>
          {ordinal(of.queue_position)}
          <span className="muted">
            {of.ahead_runs === 0
              ? `; ${of.units.good > 0 ? `${count(of.units.good, "board")} free` : "no board is free"}`
              : `; ${count(of.ahead_runs, "run")} with ${count(of.ahead_boots, "boot")} ahead`}
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
        <dt>Basis</dt>
        <dd className="muted">{oneLine(of.basis_text)}</dd>
      </dl>
      {of.notes.map(note => (
        <p key={note} className={classes.note}>
          {oneLine(note)}
        </p>
      ))}
    </>
  );
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
          (worth attention from {number(of.delta)} {unit})
        </span>
      )}{" "}
      <EvidenceMark evidence={of.evidence} />
      <span className={classes.why}>{oneLine(of.why)}</span>
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
    if (quote.device_s != null) announce(`Quote: ${rough(quote.device_s)} of board time.`);
  }, [quote, current, key]);
}

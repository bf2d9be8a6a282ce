import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { deviceTypesQuery, submissionsQuery } from "@/api/queries";
import type { DeviceTypeView, SubmissionSummary } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine, WHOSE } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { Progress } from "@/parts/Progress";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { TargetVerdicts } from "@/parts/TargetVerdicts";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";
import classes from "./HomePage.module.css";

const LAST = 10;
/** More are asked for, since what somebody canceled says nothing. */
const ASKED = 25;
const RUNNING = 5;
const LOOK_AGAIN_MS = 15_000;

export function HomePage() {
  const finished = useQuery({
    ...submissionsQuery({ active: false, sort: "ended", limit: ASKED }),
    refetchInterval: LOOK_AGAIN_MS,
  });
  const active = useQuery({
    ...submissionsQuery({ active: true, limit: RUNNING }),
    refetchInterval: LOOK_AGAIN_MS,
  });
  const types = useQuery(deviceTypesQuery);
  return (
    <Page
      title="wqlab"
      heading="Is your workqueue or scheduler patch better, and where?"
      lead={
        <p>
          Submit a series. The lab builds the baseline and the candidate kernel, boots them in turns on the
          same machines, and answers per CPU topology:{" "}
          <strong className={classes.answer}>better, worse, the same, or can't tell yet, and why.</strong>
        </p>
      }
    >
      <div className="row">
        <Link to="/submit" className={classes.call}>
          Submit a series
        </Link>
        <Link to="/plans">What is measured, and how</Link>
      </div>
      <div className={classes.columns}>
        <Section id="verdicts" title="Last verdicts" actions={<Link to="/submissions">All submissions</Link>}>
          <Verdicts of={finished.data?.items.filter(each => each.outcome !== "canceled").slice(0, LAST)} />
        </Section>
        {/* Shown together, so that neither pushes the other when it comes. */}
        <div className={classes.side}>
          {active.data && types.data ? (
            <>
              <Section id="devices" title="Devices" actions={<Link to="/lab">Lab and queue</Link>}>
                <Devices of={types.data} />
              </Section>
              <Section id="running" title="Now">
                <Running of={active.data.items} total={active.data.total} />
              </Section>
            </>
          ) : (
            <Skeleton lines={8} height="5rem" />
          )}
        </div>
      </div>
    </Page>
  );
}

function Verdicts({ of }: { of: readonly SubmissionSummary[] | undefined }) {
  if (!of) return <Skeleton lines={LAST} height="2.6rem" />;
  if (of.length === 0) {
    return (
      <EmptyState title="No verdict yet">
        <code>make demo</code> submits an example series, or submit your own.
      </EmptyState>
    );
  }
  return (
    <ol className={classes.list}>
      {of.map(each => (
        <li key={each.id} className={classes.entry}>
          <div>
            <Link
              to={each.outcome === "passed" ? "/submissions/$id/report" : "/submissions/$id"}
              params={{ id: each.id }}
            >
              {titleOf(each)}
            </Link>{" "}
            <span className={`${classes.when} muted`}>
              {each.owner}, <RelativeTime at={each.finished_at} />
            </span>
          </div>
          {each.outcome === "passed" ? (
            <TargetVerdicts targets={each.targets} headlines />
          ) : (
            <span>
              <StateBadge state={each.state} outcome={each.outcome} />
              {each.failure && each.outcome === "failed" && (
                <span className="muted">
                  {" "}
                  ({WHOSE[each.failure.kind].word}): {oneLine(each.failure.summary)}
                </span>
              )}
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}

function Running({ of, total }: { of: readonly SubmissionSummary[]; total: number }) {
  if (of.length === 0) return <p className="muted">Nothing runs. The next submission starts at once.</p>;
  return (
    <>
      <ul className={classes.list}>
        {of.map(each => (
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
      {total > of.length && (
        <Link to="/submissions" search={{ state: "unfinished" }}>
          {count(total - of.length, "more", "more")}
        </Link>
      )}
    </>
  );
}

function Devices({ of }: { of: readonly DeviceTypeView[] }) {
  return (
    <ul className={classes.devices}>
      {of.map(type => (
        <li key={type.name} className={classes.device}>
          <span>
            <Link to="/lab" hash={type.name}>
              {type.name}
            </Link>{" "}
            <span className="muted">
              {type.units.good} of {type.devices.length} free
              {type.units.unchecked > 0 && `, ${type.units.unchecked} to be checked`}
              {type.emulated && ", emulated"}
            </span>
          </span>
          <TopologyDrawing layout={type.layout} name={type.name} />
        </li>
      ))}
    </ul>
  );
}

function titleOf(each: SubmissionSummary): string {
  const version = each.version != null && each.version > 1 ? ` (v${each.version})` : "";
  return (oneLine(each.title) || `Submission ${each.id}`) + version;
}

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { deviceTypesQuery, submissionsQuery } from "@/api/queries";
import type { DeviceTypeView, SubmissionSummary } from "@/api/types";
import { count } from "@/lib/numbers";
import { FAILURE_KINDS, oneLine } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { Progress } from "@/parts/Progress";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { TargetVerdicts } from "@/parts/TargetVerdicts";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";
import classes from "./HomePage.module.css";

const SHOWN = 10;
/** Request more than are shown: canceled submissions are filtered out. */
const REQUESTED = 25;
const RUNNING = 5;
const REFRESH_MS = 15_000;

export function HomePage() {
  const finished = useQuery({
    ...submissionsQuery({ active: false, sort: "ended", limit: REQUESTED }),
    refetchInterval: REFRESH_MS,
  });
  const active = useQuery({
    ...submissionsQuery({ active: true, limit: RUNNING }),
    refetchInterval: REFRESH_MS,
  });
  const types = useQuery(deviceTypesQuery);
  return (
    <Page
      title="wqlab"
      heading="Is your workqueue or scheduler patch better, and where?"
      lead={
        <p>
          Submit a series. The lab builds a baseline and a candidate kernel, boots them alternately on the
          same devices, and reports for each CPU topology:{" "}
          <strong className={classes.answer}>better, worse, the same, or inconclusive, and why.</strong>
        </p>
      }
    >
      <div className="row">
        <Link to="/submit" className={classes.call}>
          Submit a series
        </Link>
        <Link to="/plans">Plans and metrics</Link>
      </div>
      <div className={classes.columns}>
        <Section
          id="verdicts"
          title="Latest verdicts"
          actions={<Link to="/submissions">All submissions</Link>}
        >
          <Verdicts of={finished.data?.items.filter(each => each.outcome !== "canceled").slice(0, SHOWN)} />
        </Section>
        {/* Rendered together to avoid layout shifts. */}
        <div className={classes.side}>
          {active.data && types.data ? (
            <>
              <Section id="devices" title="Devices" actions={<Link to="/lab">Lab and queue</Link>}>
                <Devices of={types.data} />
              </Section>
              <Section id="running" title="In progress">
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
  if (!of) return <Skeleton lines={SHOWN} height="2.6rem" />;
  if (of.length === 0) {
    return (
      <EmptyState title="No verdicts yet">
        Submit a series, or run <code>make demo</code> to submit an example.
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
                  ({FAILURE_KINDS[each.failure.kind].word}): {oneLine(each.failure.summary)}
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
  if (of.length === 0)
    return <p className="muted">Nothing is running. A new submission starts immediately.</p>;
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
              {type.device_counts.good} of {type.devices.length} free
              {type.device_counts.unchecked > 0 && `, ${type.device_counts.unchecked} unchecked`}
              {type.emulated && (type.modelled ? ", modelled" : ", emulated")}
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

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useHasScope } from "@/api/session";
import type { ListWatch, TreeWatch, WatchView } from "@/api/types";
import { watchQuery } from "@/api/watchQueries";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { FailureCard } from "@/parts/FailureCard";
import { Page } from "@/parts/Page";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import { Decisions } from "./Decisions";
import { Heads } from "./Heads";
import { BATCH_MEANING } from "./labels";
import { Preview } from "./Preview";
import { Names, Obstacle } from "./parts";
import { WatchActions } from "./WatchActions";
import { WatchFile, WatchForm } from "./WatchForm";
import { budgetText, obstacle, quietText } from "./watch";
import classes from "./watches.module.css";

/** Poll: there are no events for watches. Heads are there some seconds after a look. */
const REFRESH_MS = 5_000;
const route = getRouteApi("/watches/$name");

export function WatchPage() {
  const { name } = route.useParams();
  const { form } = route.useSearch();
  const changes = useHasScope()("admin");
  const { data: view } = useSuspenseQuery({ ...watchQuery(name), refetchInterval: REFRESH_MS });
  const { spec } = view;
  if (form && changes && !view.from_file) {
    return (
      <Page
        title={`Change ${spec.name}`}
        lead={
          spec.kind === "list"
            ? "What it took already does not change, and it stays enabled or disabled."
            : "Heads that wait are measured as the changed one says. It stays enabled or disabled."
        }
        trail={
          <>
            <Link to="/watches">Watches</Link> /{" "}
            <Link to="/watches/$name" params={{ name }}>
              {spec.name}
            </Link>
          </>
        }
      >
        <WatchForm key={spec.name} view={view} />
      </Page>
    );
  }
  const failure = view.mailing_list?.failure;
  return (
    <Page
      title={spec.name}
      lead={spec.summary ? oneLine(spec.summary) : undefined}
      trail={<Link to="/watches">Watches</Link>}
      actions={<WatchActions view={view} />}
    >
      <Facts view={view} />
      {failure && <FailureCard failure={failure} what="last read of the list" />}
      {spec.kind === "list" ? (
        <>
          <Preview spec={spec} />
          <Decisions name={spec.name} />
        </>
      ) : (
        <Heads spec={spec} refreshMs={REFRESH_MS} />
      )}
      <WatchFile spec={spec} />
    </Page>
  );
}

function Fact({ name, long = false, children }: { name: string; long?: boolean; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd className={long ? classes.long : undefined}>{children}</dd>
    </>
  );
}

function Facts({ view }: { view: WatchView }) {
  const { spec } = view;
  const found = obstacle(view, useNow(30_000));
  return (
    <dl className="facts">
      <Fact name="State">
        <StateBadge state={view.enabled_at === null ? "off" : "on"} />{" "}
        <span className="muted">
          <StateText view={view} />
        </span>
      </Fact>
      {found && (
        <Fact name="Stands still">
          <Obstacle of={found} />
        </Fact>
      )}
      {spec.kind === "list" ? <ListFacts view={view} spec={spec} /> : <TreeFacts view={view} spec={spec} />}
      <Fact name="Budget">
        {budgetText(view)} <span className="muted">of device time used in 24 hours, by quotes</span>
      </Fact>
      <Fact name="Quiet hours">
        {quietText(spec.quiet_hours ?? []) || <span className="muted">none</span>}
      </Fact>
      <Fact name="Owner">{oneLine(spec.owner)}</Fact>
      <Fact name="Added" long>
        <RelativeTime at={view.created_at} /> by {oneLine(view.created_by)}
      </Fact>
      <Fact name="Changed" long>
        <RelativeTime at={view.changed_at} /> by {oneLine(view.changed_by)}
        {view.from_file && (
          <>
            ; it is the file <code>intake/watches/{spec.name}.yaml</code> of the data folder, and changed and
            removed there
          </>
        )}
      </Fact>
    </dl>
  );
}

function StateText({ view }: { view: WatchView }) {
  const { spec, repository } = view;
  if (spec.kind === "tree") {
    if (view.enabled_at === null)
      return (
        <>
          looked <RelativeTime at={repository?.looked_at} />; neither looks nor submits now
        </>
      );
    return (
      <>
        looked <RelativeTime at={repository?.looked_at} />, looks again{" "}
        <NextLook at={repository?.next_look_at ?? null} />, every {count(spec.every_minutes ?? 60, "minute")}
      </>
    );
  }
  if (view.enabled_at === null) return "It takes nothing.";
  return (
    <>
      It takes series whose last patch arrives after it was enabled, <RelativeTime at={view.enabled_at} />.
    </>
  );
}

/** A time that has passed is due: the worker is asked in a moment. */
function NextLook({ at }: { at: string | null }) {
  return at !== null && Date.parse(at) <= Date.now() ? "in a moment" : <RelativeTime at={at} />;
}

function ListFacts({ view, spec }: { view: WatchView; spec: ListWatch }) {
  const list = view.mailing_list;
  return (
    <>
      <Fact name="List" long>
        {spec.archive}
        {list?.list && <> ({list.list})</>}
        {list && (
          <span className="muted">
            , read <RelativeTime at={list.read_at} absent="not yet" />: {count(list.mails, "mail")},{" "}
            {list.undecided} of series that are not complete
          </span>
        )}
      </Fact>
      <Fact name="Files">
        <Names of={spec.paths} none="any" />
      </Fact>
      <Fact name="Subjects">
        <Names of={spec.subjects} none="any" />
      </Fact>
      <Fact name="Authors">
        <Names of={spec.authors} none="any" />
      </Fact>
      <Fact name="Asking">
        {spec.only_if_asked ? (
          <>
            only series whose cover letter has a line <code>wqlab: test</code>
          </>
        ) : (
          "not needed: every complete series that matches is taken"
        )}
      </Fact>
      {spec.what_it_touches && (
        <Fact name="Proposals">
          the targets that the lab proposes for the files and functions that a series changes
        </Fact>
      )}
      <Fact name={spec.what_it_touches ? "Of these" : "Measures"}>
        <Names of={spec.targets} none="everything that the lab has" />
      </Fact>
      <Fact name="Tree">{spec.tree}</Fact>
      <Fact name="May command by mail">
        <Names of={spec.commanders} none="the author alone" />
      </Fact>
    </>
  );
}

function TreeFacts({ view, spec }: { view: WatchView; spec: TreeWatch }) {
  const url = view.repository?.url ?? "";
  const parameters = Object.entries(spec.parameters ?? {}).map(([name, value]) => `${name}=${value}`);
  return (
    <>
      <Fact name="Repository" long>
        {/^https?:\/\//.test(url) ? (
          <a href={url} rel="noreferrer">
            {url}
          </a>
        ) : url ? (
          <code>{oneLine(url)}</code>
        ) : (
          <span className="muted">the lab has no such tree any more</span>
        )}{" "}
        <span className="muted">(tree {spec.tree})</span>
      </Fact>
      <Fact name="Branches">
        <Names of={spec.branches} none="none" />
      </Fact>
      <Fact name="Tags">
        <Names of={spec.tags} none="none" />
      </Fact>
      <Fact name="Measures">
        <Names of={spec.targets} none="nothing" />{" "}
        <span className="muted">
          with priority {spec.priority}
          {spec.blocks != null && `, ${count(spec.blocks, "block")}`}
        </span>
      </Fact>
      {parameters.length > 0 && (
        <Fact name="Parameters">
          <Names of={parameters} none="none" />
        </Fact>
      )}
      <Fact name="Batch">
        {spec.batch} <span className="muted">{BATCH_MEANING[spec.batch ?? "newest"]}</span>
      </Fact>
    </>
  );
}

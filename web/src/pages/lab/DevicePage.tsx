import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { usePaged } from "@/api/paged";
import { deviceHistoryQuery, deviceQuery, deviceTypesQuery } from "@/api/queries";
import type { CpuLayout, DeviceView } from "@/api/types";
import { count } from "@/lib/numbers";
import { DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { Pager } from "@/parts/Pager";
import { Skeleton } from "@/parts/Skeleton";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";
import { HealthOf, HolderOf } from "./Devices";
import { BootLog } from "./BootLog";
import { CheckText } from "./CheckText";
import { DeviceActions } from "./DeviceActions";
import { consoleColumns, HEALTH_COLUMNS, runColumns } from "./deviceColumns";
import classes from "./LabPage.module.css";
import { compared } from "./layouts";
import { NotRead } from "./NotRead";
import { HISTORY_PAGE } from "./route";

const LOOK_AGAIN_MS = 15_000;
const route = getRouteApi("/lab/$name");

export function DevicePage() {
  const { name } = route.useParams();
  const { cursor, run, boot } = route.useSearch();
  const { data: device } = useSuspenseQuery({ ...deviceQuery(name), refetchInterval: LOOK_AGAIN_MS });
  const { data: types } = useSuspenseQuery(deviceTypesQuery);
  const asked = useQuery({
    ...deviceHistoryQuery(name, { limit: HISTORY_PAGE, ...(cursor && { cursor }) }),
    refetchInterval: LOOK_AGAIN_MS,
  });
  const history = asked.data;
  const paged = usePaged(cursor, history?.runs, HISTORY_PAGE);
  const type = types.find(each => each.name === device.device_type);
  const runs = useMemo(() => runColumns(name), [name]);
  const consoles = useMemo(() => consoleColumns(name), [name]);
  // A lease says which run; what that is, the newest runs say.
  const working = history?.runs.items.find(each => each.run_id === device.lease?.run_id);
  return (
    <Page
      title={device.name}
      trail={<Link to="/lab">Lab</Link>}
      lead={
        <>
          {device.device_type} in lab {device.lab}
        </>
      }
      actions={<DeviceActions device={device} />}
    >
      <dl className="facts">
        <dt>Health</dt>
        <dd>
          <HealthOf device={device} />
        </dd>
        <dt>Who has it</dt>
        <dd>
          <HolderOf device={device} bar={working} />
        </dd>
      </dl>
      <Section id="topology" title="Topology">
        <Topologies device={device} described={type?.layout ?? null} />
      </Section>
      {run !== null && boot !== null && <BootLog key={boot} run={run} boot={boot} />}
      {!history && asked.error && (
        <NotRead what="The history" error={asked.error} again={() => void asked.refetch()} />
      )}
      {!history && !asked.error && <Skeleton lines={12} height="1.8rem" />}
      {history && (
        <>
          <Section id="consoles" title="Last consoles">
            <DataTable
              caption={`Last consoles of ${name}`}
              captionHidden
              copyable={false}
              columns={consoles}
              rows={history.consoles}
              rowKey={of => of.boot_id}
              mark={of => (of.boot_id === boot ? "chosen" : undefined)}
              fixedOrder
              narrow="stack"
              empty="It has not booted yet."
            />
          </Section>
          {history.checks.length > 0 && (
            <Section id="checks" title="Walked through" lead="Step by step, as a maintainer asked for it.">
              {history.checks.map(check => (
                <CheckText key={check.id} check={check} />
              ))}
            </Section>
          )}
          <Section id="health" title="Health history">
            <DataTable
              caption={`Health of ${name}`}
              captionHidden
              columns={HEALTH_COLUMNS}
              rows={history.health}
              rowKey={of => `${of.at} ${of.health}`}
              fixedOrder
              narrow="stack"
              empty="Its health never changed."
            />
          </Section>
          <Section
            id="runs"
            title="What ran on it"
            lead={`${count(history.runs.total, "run")}. A run ends well when its boots were measured; what they say of a series is its submission's to tell.`}
          >
            {history.runs.items.length === 0 ? (
              <EmptyState title="Nothing ran on it yet" />
            ) : (
              <DataTable
                caption={`Runs on ${name}`}
                captionHidden
                columns={runs}
                rows={history.runs.items}
                rowKey={of => `${of.run_id}-${of.attempt}-${of.started_at}`}
                fixedOrder
                narrow="stack"
              />
            )}
            <Pager paged={paged} shown={history.runs.items.length} total={history.runs.total} />
          </Section>
        </>
      )}
    </Page>
  );
}

function Topologies({ device, described }: { device: DeviceView; described: CpuLayout | null }) {
  const measured = device.layout?.basis === "measured" ? device.layout : null;
  return (
    <>
      {described && (
        <p>
          {measured ? (
            <>
              What its last kernel measured: <strong>{compared(described, measured)}</strong>.
            </>
          ) : (
            "No kernel has reported what it measures yet."
          )}
        </p>
      )}
      <div className={classes.drawings}>
        {described && (
          <div className={classes.drawing}>
            <h3>Described by {device.device_type}</h3>
            <TopologyDrawing layout={described} name={`${device.device_type}, as described`} words />
          </div>
        )}
        {measured && (
          <div className={classes.drawing}>
            <h3>Measured by its kernel</h3>
            <TopologyDrawing layout={measured} name={`${device.name}, as measured`} words />
          </div>
        )}
      </div>
    </>
  );
}

import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { canariesQuery, deviceHistoryQuery, deviceQuery, deviceTypesQuery } from "@/api/queries";
import type { CpuLayout, DeviceTypeView, DeviceView } from "@/api/types";
import { kindOf } from "@/lib/devices";
import { count } from "@/lib/numbers";
import { Canaries } from "@/parts/Canaries";
import { DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Facts } from "@/parts/Facts";
import { Page, Section } from "@/parts/Page";
import { PagedTable } from "@/parts/PagedTable";
import { Skeleton } from "@/parts/Skeleton";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";
import { BootLog } from "./BootLog";
import { compareWithDescription, differences } from "./compareLayouts";
import { DeviceActions } from "./DeviceActions";
import { DeviceCheckSteps } from "./DeviceCheckSteps";
import { ConditionText, Holder } from "./Devices";
import { consoleColumns, HEALTH_COLUMNS, runColumns } from "./deviceColumns";
import classes from "./LabPage.module.css";
import { HISTORY_PAGE } from "./search";

const REFRESH_MS = 15_000;
const route = getRouteApi("/lab/$name");

export function DevicePage() {
  const { name } = route.useParams();
  const { cursor, run, boot } = route.useSearch();
  const { data: device } = useSuspenseQuery({ ...deviceQuery(name), refetchInterval: REFRESH_MS });
  const { data: types } = useSuspenseQuery(deviceTypesQuery);
  const request = useQuery({
    ...deviceHistoryQuery(name, { limit: HISTORY_PAGE, ...(cursor && { cursor }) }),
    refetchInterval: REFRESH_MS,
  });
  const history = request.data;
  const { data: canaries } = useQuery(canariesQuery({ device: name }));
  const type = types.find(each => each.name === device.device_type);
  const runs = useMemo(() => runColumns(name), [name]);
  const consoles = useMemo(() => consoleColumns(name), [name]);
  return (
    <Page
      title={device.name}
      trail={<Link to="/lab">Lab</Link>}
      lead={
        <>
          {device.device_type} in lab {device.lab}
          {type && `: ${type.summary}; ${kindOf(type)}, ${type.arch}`}
          {type?.tested === false && `, ${untestedText(type)}`}
        </>
      }
      actions={<DeviceActions device={device} />}
    >
      <Facts
        of={{
          State: <ConditionText device={device} />,
          "Held by": (device.lease || device.elsewhere) && <Holder device={device} />,
        }}
      />
      <Section id="topology" title="Topology">
        <Topologies device={device} described={type?.layout ?? null} />
      </Section>
      {canaries && canaries.length > 0 && (
        <Section
          id="canaries"
          title="A/A comparisons"
          lead="Comparisons of equal kernels in idle time: how noisy the device is, how often a verdict calls equal kernels different, and the smallest effect that a number of blocks finds."
        >
          <Canaries records={canaries} by="plan" caption={`A/A comparisons on ${name}`} />
        </Section>
      )}
      {run !== null && boot !== null && <BootLog key={boot} run={run} boot={boot} />}
      {!history && <Skeleton lines={12} height="1.8rem" />}
      {history && (
        <>
          <Section id="consoles" title="Recent consoles">
            <DataTable
              caption={`Recent consoles of ${name}`}
              captionHidden
              copyable={false}
              columns={consoles}
              rows={history.consoles}
              rowKey={of => of.boot_id}
              mark={of => (of.boot_id === boot ? "chosen" : undefined)}
              fixedOrder
              narrow="stack"
              empty="This device has not booted yet."
            />
          </Section>
          {history.checks.length > 0 && (
            <Section id="checks" title="Device checks" lead="Step-by-step checks requested by maintainers.">
              {history.checks.map(check => (
                <DeviceCheckSteps key={check.id} check={check} />
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
              empty="No health changes."
            />
          </Section>
          <Section
            id="runs"
            title="Runs"
            lead={`${count(history.runs.total, "run")}. A run passes when all its boots were measured; verdicts are on the submission's page.`}
          >
            <PagedTable
              page={history.runs}
              cursor={cursor}
              size={HISTORY_PAGE}
              caption={`Runs on ${name}`}
              columns={runs}
              rowKey={of => `${of.run_id}-${of.attempt}-${of.started_at}`}
              none={<EmptyState title="No runs yet" />}
            />
          </Section>
        </>
      )}
    </Page>
  );
}

/** What is known of the lab on a kind of machine on which it never ran. */
function untestedText({ rehearsed }: DeviceTypeView): string {
  return rehearsed
    ? `rehearsed on ${rehearsed.on} on an emulated machine, never run on such a machine; not covered: ${rehearsed.not_covered.join(", ")}`
    : "untested: never run on such a machine";
}

function Topologies({ device, described }: { device: DeviceView; described: CpuLayout | null }) {
  const measured = device.layout?.basis === "measured" ? device.layout : null;
  const same = described && measured && differences(described, measured).length === 0;
  return (
    <>
      {described && (
        <p>
          {measured ? (
            <>
              Topology reported by the last booted kernel:{" "}
              <strong>{compareWithDescription(described, measured)}</strong>.
            </>
          ) : (
            "No boot has reported its topology yet."
          )}
        </p>
      )}
      <div className={classes.drawings}>
        {described && !same && (
          <div className={classes.drawing}>
            <h3>Described by {device.device_type}</h3>
            <TopologyDrawing layout={described} name={`${device.device_type}, as described`} words />
          </div>
        )}
        {measured && (
          <div className={classes.drawing}>
            <h3>Measured by the kernel</h3>
            <TopologyDrawing layout={measured} name={`${device.name}, as measured`} words />
          </div>
        )}
      </div>
    </>
  );
}

import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { devicesQuery, deviceTypesQuery, labsQuery, timelineQuery } from "@/api/queries";
import type { DeviceTypeView, DeviceView, TimelineBar } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";
import { Devices } from "./Devices";
import classes from "./LabPage.module.css";
import { Pools } from "./Pools";
import { Queue } from "./Queue";
import { Timeline } from "./Timeline";
import { useHashPlace } from "./useHashPlace";

/** Devices and the queue have no events of their own. */
const LOOK_AGAIN_MS = 15_000;
/** So long before now; a run that has a device is in it however long it had it. */
const AT_WORK = timelineQuery({ hours: 1 });

export function LabPage() {
  const { data: types } = useSuspenseQuery({ ...deviceTypesQuery, refetchInterval: LOOK_AGAIN_MS });
  const { data: devices } = useSuspenseQuery({ ...devicesQuery, refetchInterval: LOOK_AGAIN_MS });
  const { data: lately } = useQuery({ ...AT_WORK, refetchInterval: LOOK_AGAIN_MS });
  const { data: labs } = useSuspenseQuery({ ...labsQuery, refetchInterval: LOOK_AGAIN_MS });
  const present = labs.filter(each => each.removed_at === null);
  const severalLabs = present.length > 1;
  useHashPlace();
  const working = new Map(
    lately?.bars.filter(bar => bar.finished_at === null).map(bar => [bar.run_id, bar]) ?? [],
  );
  if (types.length === 0) {
    return (
      <Page title="Lab">
        <EmptyState title="This lab has no devices yet">
          A device is described in the device-types folder; the lab's worker brings it in.
        </EmptyState>
      </Page>
    );
  }
  return (
    <Page title="Lab" lead={inAll(types)}>
      <nav aria-label="On this page" className={`${classes.contents} no-print`}>
        {types.map(type => (
          <a key={type.name} href={`#${type.name}`}>
            {type.name}
          </a>
        ))}
        {severalLabs && <a href="#labs">Labs</a>}
        <a href="#timeline">What ran where</a>
        <a href="#queue">Queue</a>
      </nav>
      <Problems types={types} />
      {types.map(type => (
        <TypeSection
          key={type.name}
          type={type}
          devices={devices.filter(each => each.device_type === type.name)}
          working={working}
        />
      ))}
      {severalLabs && <Pools labs={present} />}
      <Timeline types={types.map(type => type.name)} />
      <Queue />
    </Page>
  );
}

/** What is wrong with the lab's files is the same for every type: said once. */
function Problems({ types }: { types: readonly DeviceTypeView[] }) {
  const problems = [...new Set(types.flatMap(type => type.problems ?? []))];
  if (problems.length === 0) return null;
  return (
    <ul className={classes.problems} aria-label="Problems of the lab's files">
      {problems.map(problem => (
        <li key={problem}>{oneLine(problem)}</li>
      ))}
    </ul>
  );
}

interface TypeSectionProps {
  type: DeviceTypeView;
  devices: readonly DeviceView[];
  working: ReadonlyMap<number, TimelineBar>;
}

function TypeSection({ type, devices, working }: TypeSectionProps) {
  return (
    <Section
      id={type.name}
      title={type.name}
      lead={
        <>
          {type.summary}; {type.arch}
          {type.emulated && ", emulated"}
          {type.tested === false && ", untested: the lab has never run on such a machine"}.{" "}
          <span className={classes.units}>{unitsOf(type)}.</span>
        </>
      }
    >
      <div className={classes.type}>
        <TopologyDrawing layout={type.layout} name={`${type.name}, as described`} words />
        <Devices type={type} devices={devices} working={working} />
      </div>
    </Section>
  );
}

function inAll(types: readonly DeviceTypeView[]): string {
  const sum = (of: (type: DeviceTypeView) => number) => types.reduce((all, type) => all + of(type), 0);
  const said = [
    count(
      sum(type => type.devices.length),
      "device",
    ),
    count(types.length, "type"),
    `${sum(type => type.units.good)} free`,
    `${sum(type => type.units.busy)} at work`,
  ];
  const unchecked = sum(type => type.units.unchecked);
  const out = sum(type => type.units.quarantined);
  if (unchecked > 0) said.push(`${unchecked} to be checked`);
  if (out > 0) said.push(`${out} quarantined`);
  return `${said[0]} of ${said[1]}: ${said.slice(2).join(", ")}.`;
}

/** `1 of 2 devices free, 1 at work, 3 runs queued`. */
function unitsOf({ devices, units, queued_runs }: DeviceTypeView): string {
  const parts = [`${units.good} of ${count(devices.length, "device")} free`];
  if (units.busy > 0) parts.push(`${units.busy} at work`);
  if (units.unchecked > 0) parts.push(`${units.unchecked} to be checked`);
  if (units.quarantined > 0) parts.push(`${units.quarantined} quarantined`);
  parts.push(queued_runs > 0 ? `${count(queued_runs, "run")} queued` : "nothing queued");
  return parts.join(", ");
}

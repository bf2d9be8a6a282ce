import { useSuspenseQuery } from "@tanstack/react-query";
import { devicesQuery, deviceTypesQuery, labsQuery } from "@/api/queries";
import type { DeviceTypeView, DeviceView } from "@/api/types";
import { ALL_EMULATED, countsText, sumOf } from "@/lib/devices";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { Boundary } from "@/parts/Boundary";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";
import { Devices, GeneratedDevices } from "./Devices";
import classes from "./LabPage.module.css";
import { Labs } from "./Labs";
import { Queue } from "./Queue";
import { useScrollToHash } from "./useScrollToHash";

/** Poll: there are no events for devices and the queue. */
const REFRESH_MS = 15_000;

export function LabPage() {
  const { data: types } = useSuspenseQuery({ ...deviceTypesQuery, refetchInterval: REFRESH_MS });
  const { data: devices } = useSuspenseQuery({ ...devicesQuery, refetchInterval: REFRESH_MS });
  const { data: labs } = useSuspenseQuery({ ...labsQuery, refetchInterval: REFRESH_MS });
  const present = labs.filter(each => each.removed_at === null);
  const severalLabs = present.length > 1;
  useScrollToHash();
  const described = types.filter(type => !type.generated);
  const generated = types.filter(type => type.generated);
  if (types.length === 0) {
    return (
      <Page title="Lab">
        <EmptyState title="No devices">
          Describe devices in the device-types folder; the lab's worker registers them.
        </EmptyState>
      </Page>
    );
  }
  return (
    <Page title="Lab" lead={labSummary(types)}>
      <nav aria-label="On this page" className={`${classes.contents} no-print`}>
        <a href="#queue">Queue</a>
        {described.map(type => (
          <a key={type.name} href={`#${type.name}`}>
            {type.name}
          </a>
        ))}
        {generated.length > 0 && <a href="#generated">Generated</a>}
        {severalLabs && <a href="#labs">Labs</a>}
      </nav>
      <Problems types={types} />
      <Boundary>
        <Queue />
      </Boundary>
      {described.map(type => (
        <TypeSection
          key={type.name}
          type={type}
          devices={devices.filter(each => each.device_type === type.name)}
        />
      ))}
      {generated.length > 0 && <GeneratedTypes types={generated} devices={devices} />}
      {severalLabs && <Labs labs={present} />}
    </Page>
  );
}

/** Configuration problems. They are reported for every type but shown once. */
function Problems({ types }: { types: readonly DeviceTypeView[] }) {
  const problems = [...new Set(types.flatMap(type => type.problems ?? []))];
  if (problems.length === 0) return null;
  return (
    <ul className={classes.problems} aria-label="Configuration problems">
      {problems.map(problem => (
        <li key={problem}>{oneLine(problem)}</li>
      ))}
    </ul>
  );
}

/** What is known of the lab on a kind of machine on which it never ran. */
function untestedText({ rehearsed }: DeviceTypeView): string {
  return rehearsed
    ? `rehearsed on ${rehearsed.on} on an emulated machine, never run on such a machine; not covered: ${rehearsed.not_covered.join(", ")}`
    : "untested: never run on such a machine";
}

interface TypeSectionProps {
  type: DeviceTypeView;
  devices: readonly DeviceView[];
}

function TypeSection({ type, devices }: TypeSectionProps) {
  return (
    <Section
      id={type.name}
      title={type.name}
      lead={
        <>
          {type.summary}; {type.arch}
          {type.emulated && (type.modelled ? ", modelled" : ", emulated")}
          {type.tested === false && `, ${untestedText(type)}`}.{" "}
          <span className={classes.units}>{deviceCountsText(type)}.</span>
        </>
      }
    >
      <div className={classes.type}>
        <TopologyDrawing layout={type.layout} name={`${type.name}, as described`} words />
        <Devices type={type} devices={devices} />
      </div>
    </Section>
  );
}

interface GeneratedTypesProps {
  types: readonly DeviceTypeView[];
  devices: readonly DeviceView[];
}

/** Device types that sweeps have generated: a table of all their devices, because each type has one. */
function GeneratedTypes({ types, devices }: GeneratedTypesProps) {
  return (
    <Section
      id="generated"
      title="Generated"
      lead="Instrumented device types that sweeps have used. Each is generated from its name, has one device, and is checked when a run needs it."
    >
      <GeneratedDevices
        types={new Map(types.map(type => [type.name, type]))}
        devices={types.flatMap(type => devices.filter(each => each.device_type === type.name))}
      />
    </Section>
  );
}

function labSummary(types: readonly DeviceTypeView[]): string {
  const devices = types.reduce((all, type) => all + type.devices.length, 0);
  const counts = countsText(sumOf(types.map(type => type.device_counts)));
  const emulated = types.every(type => type.emulated) ? ` ${ALL_EMULATED}` : "";
  return `${count(devices, "device")} of ${count(types.length, "type")}: ${counts}.${emulated}`;
}

/** `2 devices: 1 free, 1 in use; 3 runs queued`. */
function deviceCountsText({ devices, device_counts: counts, queued_runs }: DeviceTypeView): string {
  const queued = queued_runs > 0 ? `; ${count(queued_runs, "run")} queued` : "";
  return `${count(devices.length, "device")}: ${countsText(counts)}${queued}`;
}

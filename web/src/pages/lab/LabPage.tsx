import { useSuspenseQuery } from "@tanstack/react-query";
import { devicesQuery, deviceTypesQuery, labsQuery } from "@/api/queries";
import type { DeviceTypeView } from "@/api/types";
import { ALL_EMULATED, countsText, sumOf } from "@/lib/devices";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { Boundary } from "@/parts/Boundary";
import { EmptyState } from "@/parts/EmptyState";
import { OutOfService } from "@/parts/OutOfService";
import { Page, Section } from "@/parts/Page";
import { Devices } from "./Devices";
import classes from "./LabPage.module.css";
import { Labs } from "./Labs";
import { Queue } from "./Queue";

/** Poll: there are no events for devices and the queue. */
const REFRESH_MS = 15_000;

export function LabPage() {
  const { data: types } = useSuspenseQuery({ ...deviceTypesQuery, refetchInterval: REFRESH_MS });
  const { data: devices } = useSuspenseQuery({ ...devicesQuery, refetchInterval: REFRESH_MS });
  const { data: labs } = useSuspenseQuery({ ...labsQuery, refetchInterval: REFRESH_MS });
  const present = labs.filter(each => each.removed_at === null);
  const severalLabs = present.length > 1;
  const unused = types.filter(type => type.devices.length === 0).map(type => type.name);
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
      <Problems types={types} />
      <OutOfService devices={devices} />
      <Boundary>
        <Queue />
      </Boundary>
      <Section id="devices" title="Devices">
        <Devices types={types} devices={devices} />
        {unused.length > 0 && <p className="muted">Described, without a device: {unused.join(", ")}.</p>}
      </Section>
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

function labSummary(types: readonly DeviceTypeView[]): string {
  const devices = types.reduce((all, type) => all + type.devices.length, 0);
  const counts = countsText(sumOf(types.map(type => type.device_counts)));
  const emulated = types.every(type => type.emulated) ? ` ${ALL_EMULATED}` : "";
  return `${count(devices, "device")} of ${count(types.length, "type")}: ${counts}.${emulated}`;
}

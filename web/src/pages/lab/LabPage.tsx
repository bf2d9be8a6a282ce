import { useSuspenseQuery } from "@tanstack/react-query";
import { deviceTypesQuery } from "@/api/queries";
import { count } from "@/lib/numbers";
import { Page, Section } from "@/parts/Page";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";

export function LabPage() {
  const { data: types } = useSuspenseQuery(deviceTypesQuery);
  return (
    <Page title="Lab">
      {types.map(type => (
        <Section
          key={type.name}
          id={type.name}
          title={type.name}
          lead={`${type.summary}. ${type.free} of ${count(type.devices.length, "device")} free.`}
        >
          <TopologyDrawing layout={type.layout} name={type.name} words />
        </Section>
      ))}
    </Page>
  );
}

import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, notFound } from "@tanstack/react-router";
import { canariesQuery, planQuery } from "@/api/queries";
import type { TestPlan } from "@/api/types";
import { oneLine } from "@/lib/words";
import { Canaries } from "@/parts/Canaries";
import { type Column, DataTable } from "@/parts/DataTable";
import { Page, Section } from "@/parts/Page";
import { documentationOf, parametersOf } from "./labels";
import { Metrics } from "./Metrics";
import classes from "./PlanPage.module.css";
import { Profiles } from "./Profiles";
import { References } from "./References";
import { SourceFile } from "./SourceFile";

const route = getRouteApi("/plans/$name");

export function PlanPage() {
  const { name } = route.useParams();
  const { data: found } = useSuspenseQuery(planQuery(name));
  const { data: canaries } = useQuery(canariesQuery({ plan: name }));
  if (!found) throw notFound();
  const { plan, script = "", files = {}, readme } = found;
  const measures = plan.metrics.length > 0;
  const documentation = documentationOf(readme);
  return (
    <Page
      title={plan.name}
      lead={oneLine(plan.summary)}
      trail={<Link to="/submit">Submit</Link>}
      actions={
        !plan.checks_health && (
          <>
            <Link to="/submit" search={{ plan: [plan.name] }}>
              Submit with this plan
            </Link>
            <Link to="/submissions" search={{ plan: plan.name }}>
              Submissions
            </Link>
          </>
        )
      }
    >
      <nav aria-label="On this page" className={`${classes.contents} no-print`}>
        {readme && <a href="#about">About</a>}
        {measures && <a href="#metrics">Metrics</a>}
        <a href="#scenarios">Scenarios</a>
        {plan.axes.length > 0 && <a href="#settings">Settings</a>}
        <a href="#profiles">Defaults</a>
        {plan.references.length > 0 && <a href="#references">Published figures</a>}
        {canaries && canaries.length > 0 && <a href="#canaries">A/A comparisons</a>}
        <a href="#script">Script</a>
      </nav>
      {readme && (
        <Section id="about" title="About">
          {documentation ? (
            <a href={documentation}>What {plan.name} runs and what its figures show</a>
          ) : (
            <SourceFile name="README.md" text={readme} open />
          )}
        </Section>
      )}
      {measures && (
        <Section
          id="metrics"
          title="Metrics"
          lead="Primary metrics decide the verdict, secondary metrics are compared, explanatory metrics help to find the cause. On emulated devices only kernel counters are evidence; timings are not. Instrumented devices count instructions and cache line transfers per operation instead, with the same metrics for every plan."
        >
          <Metrics plan={plan} />
        </Section>
      )}
      <Section id="scenarios" title="Scenarios">
        <Scenarios plan={plan} />
      </Section>
      {plan.axes.length > 0 && (
        <Section
          id="settings"
          title="Settings"
          lead={
            <>
              Run-time knobs, set during a boot and read back before and after each repetition. Settings are
              compared with <code>{plan.reference_setting}</code>.
            </>
          }
        >
          <dl className="facts">
            {plan.axes.map(axis => [
              <dt key={`${axis.name} name`}>
                <code>{axis.name}</code>
              </dt>,
              <dd key={`${axis.name} values`} className="mono">
                {axis.values.join(" ")}
                {axis.default != null && ` (default: ${axis.default})`}
              </dd>,
            ])}
          </dl>
        </Section>
      )}
      <Section
        id="profiles"
        title="Defaults"
        lead="A submission can override these values. A block is one boot of each kernel on the same device."
      >
        <Profiles plan={plan} />
      </Section>
      {plan.references.length > 0 && (
        <Section
          id="references"
          title="Published figures"
          lead="Results from other machines and kernels, shown next to this lab's measurements. They do not affect verdicts."
        >
          <References plan={plan} />
        </Section>
      )}
      {canaries && canaries.length > 0 && (
        <Section
          id="canaries"
          title="A/A comparisons"
          lead="Comparisons of equal kernels with this plan in idle time: noise floor, how often a verdict calls equal kernels different, and the smallest effect that a number of blocks finds."
        >
          <Canaries records={canaries} by="device" caption={`A/A comparisons with ${plan.name}`} />
        </Section>
      )}
      <Section
        id="script"
        title="Script"
        lead="The files that run on the device. A line number is a link to its line."
      >
        <SourceFile name={plan.script} text={script} open />
        {Object.entries(files).map(([file, text]) => (
          <SourceFile key={file} name={file} text={text} open={false} />
        ))}
      </Section>
    </Page>
  );
}

type Scenario = TestPlan["scenarios"][number];

const SCENARIOS: readonly Column<Scenario>[] = [
  { id: "name", header: "Scenario", rowHeader: true, value: row => row.name },
  { id: "summary", header: "Description", value: row => oneLine(row.summary) },
  {
    id: "parameters",
    header: "Parameters",
    value: row => parametersOf(row.parameters),
    cell: row => <code>{parametersOf(row.parameters)}</code>,
  },
];

function Scenarios({ plan }: { plan: TestPlan }) {
  const hasParameters = plan.scenarios.some(scenario => Object.keys(scenario.parameters).length > 0);
  return (
    <DataTable
      caption={`Scenarios of ${plan.name}`}
      captionHidden
      copyable={false}
      fixedOrder
      columns={hasParameters ? SCENARIOS : SCENARIOS.slice(0, 2)}
      rows={plan.scenarios}
      rowKey={row => row.name}
    />
  );
}

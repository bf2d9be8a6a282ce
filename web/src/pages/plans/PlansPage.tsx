import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { plansQuery } from "@/api/queries";
import type { TestPlan } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import classes from "./PlansPage.module.css";
import { primaryOf } from "./words";

export function PlansPage() {
  const { data: plans } = useSuspenseQuery(plansQuery);
  // What checks devices stands behind what measures kernels.
  const ordered = plans.toSorted((a, b) => Number(a.plan.checks_health) - Number(b.plan.checks_health));
  return (
    <Page
      title="Plans"
      lead="A plan is what runs on a device: its workload, the settings that it switches, and what it measures of both kernels."
    >
      {plans.length === 0 ? (
        <EmptyState title="This lab has no plan yet">
          A plan is a folder in <code>testplans/</code> with a <code>plan.yaml</code> and a script.
        </EmptyState>
      ) : (
        <ul className={classes.plans}>
          {ordered.map(({ plan }) => (
            <li key={plan.name} className={classes.plan}>
              <Plan plan={plan} />
            </li>
          ))}
        </ul>
      )}
    </Page>
  );
}

function Plan({ plan }: { plan: TestPlan }) {
  return (
    <>
      <div className={classes.words}>
        <h2>
          <Link to="/plans/$name" params={{ name: plan.name }}>
            {plan.name}
          </Link>
        </h2>
        <p>{oneLine(plan.summary)}</p>
        {!plan.checks_health && (
          <p className={classes.links}>
            <Link to="/submit" search={{ plan: [plan.name] }}>
              Submit with it<span className="hidden-visually">: {plan.name}</span>
            </Link>
            <Link to="/submissions" search={{ plan: plan.name }}>
              What it found<span className="hidden-visually">: {plan.name}</span>
            </Link>
          </p>
        )}
      </div>
      <dl className={`facts ${classes.facts}`}>
        <dt>Scenarios</dt>
        <dd>{plan.scenarios.map(scenario => scenario.name).join(", ")}</dd>
        {plan.axes.length > 0 && (
          <>
            <dt>Knobs</dt>
            <dd>{plan.axes.map(axis => `${axis.name} (${axis.values.length})`).join(", ")}</dd>
          </>
        )}
        {plan.metrics.length > 0 && (
          <>
            <dt>Decides on hardware</dt>
            <dd>{primaryOf(plan, "role_hardware") ?? "nothing"}</dd>
            <dt>On emulated devices</dt>
            <dd>{primaryOf(plan, "role_emulated") ?? "nothing"}</dd>
          </>
        )}
        <dt>Besides</dt>
        <dd>
          {plan.checks_health
            ? "for the lab itself: checks devices, compares nothing"
            : [
                count(plan.metrics.length, "metric"),
                plan.references.length > 0 && count(plan.references.length, "published figure"),
              ]
                .filter(Boolean)
                .join(", ")}
        </dd>
      </dl>
    </>
  );
}

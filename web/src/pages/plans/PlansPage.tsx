import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { plansQuery } from "@/api/queries";
import type { TestPlan } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { primaryOf } from "./labels";
import classes from "./PlansPage.module.css";

export function PlansPage() {
  const { data: plans } = useSuspenseQuery(plansQuery);
  // Health-check plans come last.
  const ordered = plans.toSorted((a, b) => Number(a.plan.checks_health) - Number(b.plan.checks_health));
  return (
    <Page
      title="Plans"
      lead="A plan defines the workload that runs on a device, the settings to compare and the metrics to measure."
    >
      {plans.length === 0 ? (
        <EmptyState title="No plans">
          To add a plan, create a folder in <code>testplans/</code> with a <code>plan.yaml</code> and a
          script.
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
              Submit with this plan<span className="hidden-visually">: {plan.name}</span>
            </Link>
            <Link to="/submissions" search={{ plan: plan.name }}>
              Submissions<span className="hidden-visually">: {plan.name}</span>
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
            <dt>Primary metric</dt>
            <dd>{primaryOf(plan, "role_hardware") ?? "none"}</dd>
            <dt>Primary metric (emulated)</dt>
            <dd>{primaryOf(plan, "role_emulated") ?? "none"}</dd>
          </>
        )}
        <dt>{plan.checks_health ? "Purpose" : "Contents"}</dt>
        <dd>
          {plan.checks_health
            ? "health check of devices; compares no kernels"
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

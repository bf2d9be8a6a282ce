import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { plansQuery } from "@/api/queries";
import { Page } from "@/parts/Page";

export function PlansPage() {
  const { data: plans } = useSuspenseQuery(plansQuery);
  return (
    <Page title="Plans">
      <dl className="facts">
        {plans.map(({ plan }) => [
          <dt key={`${plan.name} name`}>
            <Link to="/plans/$name" params={{ name: plan.name }}>
              {plan.name}
            </Link>
          </dt>,
          <dd key={`${plan.name} summary`}>{plan.summary}</dd>,
        ])}
      </dl>
    </Page>
  );
}

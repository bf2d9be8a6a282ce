import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, notFound } from "@tanstack/react-router";
import { plansQuery } from "@/api/queries";
import { Page } from "@/parts/Page";

const route = getRouteApi("/plans/$name");

export function PlanPage() {
  const { name } = route.useParams();
  const { data: plans } = useSuspenseQuery(plansQuery);
  const found = plans.find(each => each.plan.name === name);
  if (!found) throw notFound();
  return (
    <Page title={found.plan.name} lead={found.plan.summary} trail={<Link to="/plans">Plans</Link>}>
      <pre>{found.script}</pre>
    </Page>
  );
}

import { getRouteApi } from "@tanstack/react-router";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";

const route = getRouteApi("/compare");

export function ComparePage() {
  const { first, second } = route.useSearch();
  return (
    <Page title="Compare two versions">
      <EmptyState
        title={
          first && second ? `Submissions ${first} and ${second}` : "Choose two submissions of one series"
        }
      />
    </Page>
  );
}

import { useSuspenseQuery } from "@tanstack/react-query";
import { treesQuery } from "@/api/queries";
import { Page } from "@/parts/Page";

export function TreesPage() {
  const { data: trees } = useSuspenseQuery(treesQuery);
  return (
    <Page title="Trees">
      <dl className="facts">
        {trees.map(({ tree }) => [
          <dt key={`${tree.name} name`}>{tree.name}</dt>,
          <dd key={`${tree.name} summary`}>{tree.summary}</dd>,
        ])}
      </dl>
    </Page>
  );
}

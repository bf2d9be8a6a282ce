import { useMay } from "@/api/session";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";

export function UsersPage() {
  const may = useMay();
  return (
    <Page title="Users">
      {!may("admin") && <EmptyState title="Only an administrator sees the lab's users." />}
    </Page>
  );
}

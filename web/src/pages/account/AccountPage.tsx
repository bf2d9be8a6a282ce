import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { Skeleton } from "@/parts/Skeleton";
import { Tokens } from "./Tokens";

export function AccountPage() {
  const { data: session, error } = useQuery(sessionQuery);
  if (error && !session) throw error;
  const user = session?.user;
  return (
    <Page title="Account">
      {!session ? (
        <Skeleton lines={6} />
      ) : !user ? (
        <EmptyState
          title="You are not signed in"
          action={
            <Link to="/sign-in" search={{ next: "/account" }}>
              Sign in
            </Link>
          }
        />
      ) : (
        <>
          <dl className="facts">
            <dt>User</dt>
            <dd>{user.name}</dd>
            <dt>Role</dt>
            <dd>{user.role}</dd>
            <dt>May</dt>
            <dd>{user.scopes.join(", ")}</dd>
          </dl>
          <Section
            id="tokens"
            title="API tokens"
            lead="For the wqlab command and CI. A token acts as you, with the scopes you give it."
          >
            <Tokens scopes={user.scopes} />
          </Section>
        </>
      )}
    </Page>
  );
}

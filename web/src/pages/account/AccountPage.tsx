import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Password } from "./Password";
import { Tokens } from "./Tokens";

const MAY: Record<string, string> = {
  read: "read",
  submit: "submit, cancel and retry your own",
  maintain: "cancel anyone's, quarantine and release devices",
  admin: "users and all tokens",
};

export function AccountPage() {
  const { user, expires_at } = useSuspenseQuery(sessionQuery).data;
  if (!user) {
    return (
      <Page title="Account">
        <EmptyState
          title="You are not signed in"
          action={
            <Link to="/sign-in" search={{ next: "/account" }}>
              Sign in
            </Link>
          }
        />
      </Page>
    );
  }
  return (
    <Page title="Account">
      <dl className="facts">
        <dt>User</dt>
        <dd>{user.name}</dd>
        <dt>Role</dt>
        <dd>{user.role}</dd>
        <dt>May</dt>
        <dd>{user.scopes.map(scope => MAY[scope] ?? scope).join("; ")}</dd>
        {expires_at && (
          <>
            <dt>Session</dt>
            <dd>
              ends <RelativeTime at={expires_at} /> unless you ask for something before
            </dd>
          </>
        )}
      </dl>
      <Section
        id="tokens"
        title="API tokens"
        lead={
          <p>
            For the <code>wqlab</code> command and for CI. A token acts as you, with the scopes you give it,
            until it is revoked or ends.
          </p>
        }
      >
        <Tokens scopes={user.scopes} />
      </Section>
      <Section
        id="password"
        title="Password"
        lead={<p>A new one signs your other browsers out. Tokens stay.</p>}
      >
        <Password name={user.name} />
      </Section>
    </Page>
  );
}

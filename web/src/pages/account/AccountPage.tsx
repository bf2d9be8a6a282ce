import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { EmptyState } from "@/parts/EmptyState";
import { Facts } from "@/parts/Facts";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { MailAddress } from "./MailAddress";
import { Password } from "./Password";
import { Tokens } from "./Tokens";

const SCOPE_TEXT: Record<string, string> = {
  read: "read submissions, reports and devices",
  submit: "submit; cancel and retry your own submissions",
  maintain: "cancel any submission; quarantine, release and check devices",
  admin: "manage users and all tokens",
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
      <Facts
        of={{
          User: user.name,
          Role: (
            <>
              {user.role}
              {user.sign_in === "oidc" && ", by your groups at the provider you sign in with"}
            </>
          ),
          Permissions: user.scopes.map(scope => SCOPE_TEXT[scope] ?? scope).join("; "),
          Session: expires_at && (
            <>
              expires <RelativeTime at={expires_at} />
              {user.sign_in === "oidc" ? "; then sign in again" : "; any request extends it"}
            </>
          ),
        }}
      />
      <Section
        id="tokens"
        title="API tokens"
        lead={
          <p>
            For the <code>wqlab</code> command and for CI. A token acts on your behalf, limited to its scopes,
            until it expires or is revoked.
          </p>
        }
      >
        <Tokens scopes={user.scopes} />
      </Section>
      <Section
        id="mail"
        title="Mail"
        lead={
          <p>
            Results of finished submissions that you own, or whose series you wrote.{" "}
            <a href="/docs/personal-mail/">How it works</a>
          </p>
        }
      >
        <MailAddress />
      </Section>
      {user.sign_in === "password" && (
        <Section
          id="password"
          title="Password"
          lead={<p>Changing your password signs you out of all other browsers. API tokens stay valid.</p>}
        >
          <Password name={user.name} />
        </Section>
      )}
    </Page>
  );
}

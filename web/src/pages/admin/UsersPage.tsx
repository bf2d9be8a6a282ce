import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, useMemo, useState } from "react";
import { api, dataOf } from "@/api/client";
import { usePaged } from "@/api/paged";
import { usersQuery } from "@/api/queries";
import { sessionQuery } from "@/api/session";
import type { UserChange, UserPassword, UserRole, UserView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, NativeSelect, TextInput } from "@/kit";
import { count } from "@/lib/numbers";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FormError } from "@/parts/FormError";
import { Page } from "@/parts/Page";
import { Pager } from "@/parts/Pager";
import { RelativeTime } from "@/parts/RelativeTime";
import { Secret } from "@/parts/Secret";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./UsersPage.module.css";

const PAGE = 50;
const ROLES: UserRole[] = ["viewer", "submitter", "maintainer", "admin"];
const route = getRouteApi("/admin/users");

export function UsersPage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  if (!user?.scopes.includes("admin")) {
    return (
      <Page title="Users">
        <EmptyState title="Only administrators can manage users" />
      </Page>
    );
  }
  return <Users self={user.name} />;
}

function Users({ self }: { self: string }) {
  const { q, cursor } = route.useSearch();
  const { data: page } = useQuery(usersQuery({ limit: PAGE, ...(q && { q }), ...(cursor && { cursor }) }));
  const paged = usePaged(cursor, page, PAGE);
  const [shown, setShown] = useState<UserPassword | null>(null);
  return (
    <Page title="Users" lead={page ? count(page.total, "user") : "\u00a0"}>
      <NewUser onMade={setShown} />
      {shown && (
        <Secret
          onDone={() => setShown(null)}
          commands={[{ name: `password of ${shown.name}`, text: shown.password }]}
        >
          Password of <strong>{shown.name}</strong> ({shown.role}). Copy it now: it will not be shown again.
          The user can change it on the Account page.
        </Secret>
      )}
      {page ? (
        <UserList users={page.items} self={self} onPassword={setShown} />
      ) : (
        <Skeleton lines={8} height="1.8rem" />
      )}
      <Pager paged={paged} shown={page?.items.length ?? 0} total={page?.total ?? 0} />
    </Page>
  );
}

function NewUser({ onMade }: { onMade(made: UserPassword): void }) {
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: (body: { name: string; role: UserRole }) => dataOf(api.POST("/api/v1/users", { body })),
    onSuccess: made => {
      onMade(made);
      void client.invalidateQueries({ queryKey: ["users"] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    make.mutate(
      { name: String(data.get("name")).trim(), role: data.get("role") as UserRole },
      { onSuccess: () => form.reset() },
    );
  };
  return (
    <form className="form-row" onSubmit={submit}>
      <FormError error={make.error} />
      <TextInput
        name="name"
        label="User name"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        required
        withAsterisk={false}
        pattern="[a-z0-9][a-z0-9._\-]{0,63}"
        title="Lowercase letters, digits, dot, dash and underscore"
      />
      <NativeSelect name="role" label="Role" data={ROLES} defaultValue="submitter" />
      <Button type="submit" loading={make.isPending}>
        Create user
      </Button>
    </form>
  );
}

/** How a user signs in; for a user of the provider, as whom. */
function SignInCell({ user }: { user: UserView }) {
  if (user.sign_in === "password") return <>password</>;
  return (
    <>
      <span title={`subject ${user.subject}`}>{user.issuer}</span>
      {user.without_role_since && (
        <span className="muted">
          , without a role since <RelativeTime at={user.without_role_since} />
        </span>
      )}
    </>
  );
}

interface UserListProps {
  users: readonly UserView[];
  self: string;
  onPassword(made: UserPassword): void;
}

function UserList({ users, self, onPassword }: UserListProps) {
  const client = useQueryClient();
  const refused = (error: Error) => toast({ tone: "bad", text: error.message });
  const change = useMutation({
    mutationFn: ({ name, ...body }: UserChange & { name: string }) =>
      dataOf(api.PATCH("/api/v1/users/{name}", { params: { path: { name } }, body })),
    onSuccess: user => toast({ text: `${user.name}: ${user.disabled_at ? "disabled" : user.role}.` }),
    onError: refused,
    onSettled: () => client.invalidateQueries({ queryKey: ["users"] }),
  });
  const reset = useMutation({
    mutationFn: (name: string) =>
      dataOf(api.POST("/api/v1/users/{name}/password", { params: { path: { name } } })),
    onSuccess: onPassword,
    onError: refused,
  });
  const { mutate: set } = change;
  const { mutate: newPassword } = reset;
  const columns = useMemo(
    (): Column<UserView>[] => [
      { id: "name", header: "Name", value: of => of.name, rowHeader: true },
      {
        id: "role",
        header: "Role",
        value: of => ROLES.indexOf(of.role),
        cell: of =>
          of.name === self || of.sign_in === "oidc" ? (
            of.role
          ) : (
            <select
              className={classes.role}
              aria-label={`Role of ${of.name}`}
              value={of.role}
              disabled={of.disabled_at !== null}
              onChange={event => set({ name: of.name, role: event.target.value as UserRole })}
            >
              {ROLES.map(role => (
                <option key={role}>{role}</option>
              ))}
            </select>
          ),
      },
      {
        id: "sign-in",
        header: "Sign-in",
        value: of => of.sign_in,
        cell: of => <SignInCell user={of} />,
      },
      { id: "made", header: "Created", value: of => of.created_at, time: true },
      { id: "seen", header: "Last sign-in", value: of => of.last_sign_in_at, time: true },
      {
        id: "disabled",
        header: "Disabled",
        value: of => of.disabled_at,
        cell: of =>
          of.disabled_at ? <RelativeTime at={of.disabled_at} /> : <span className="muted">no</span>,
      },
      {
        id: "actions",
        header: "Actions",
        bare: true,
        sortable: false,
        value: () => null,
        cell: of =>
          of.name !== self && (
            <span className={classes.actions}>
              {of.sign_in === "password" && (
                <Button
                  size="compact-xs"
                  variant="default"
                  aria-label={`New password for ${of.name}`}
                  onClick={() => newPassword(of.name)}
                >
                  New password
                </Button>
              )}
              <Button
                size="compact-xs"
                variant="default"
                aria-label={`${of.disabled_at ? "Enable" : "Disable"} ${of.name}`}
                onClick={() => set({ name: of.name, disabled: of.disabled_at === null })}
              >
                {of.disabled_at ? "Enable" : "Disable"}
              </Button>
            </span>
          ),
      },
    ],
    [self, set, newPassword],
  );
  return (
    <DataTable
      caption="Users"
      captionHidden
      copyable={false}
      columns={columns}
      rows={users}
      rowKey={of => of.name}
      narrow="stack"
    />
  );
}

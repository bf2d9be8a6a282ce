import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { permissionsQuery } from "@/api/queries";
import { useSession } from "@/api/session";
import type { OperationPermission, Permissions } from "@/api/types";
import { humanize } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Page, Section } from "@/parts/Page";
import classes from "./PermissionsPage.module.css";
import { byGroup, nameOf, plain } from "./permissions";

const route = getRouteApi("/permissions");

export function PermissionsPage() {
  const { all } = route.useSearch();
  const { data } = useSuspenseQuery(permissionsQuery);
  const session = useSession();
  const groups = useMemo(() => byGroup(data.operations, all), [data, all]);
  const columns = useMemo(() => columnsOf(data.roles.map(({ role }) => role)), [data]);
  return (
    <Page
      title="Who may do what"
      lead={
        <>
          As the server enforces it. {session?.user && `You are ${article(session.user.role)}. `}A role
          includes those before it. What worker tokens may do is in the{" "}
          <a href="/docs/labs/#permissions-of-a-lab">documentation</a>.
        </>
      }
      actions={
        all ? (
          <Link to="/permissions">Show only what changes something</Link>
        ) : (
          <Link to="/permissions" search={{ all: true }}>
            Show reading too
          </Link>
        )
      }
    >
      <div className={classes.groups}>
        {groups.map(([group, operations]) => (
          <Section key={group} id={group} title={titleOf(group)}>
            <DataTable
              caption={`Who may: ${group}`}
              captionHidden
              copyable={false}
              columns={columns}
              rows={operations}
              rowKey={of => of.operation}
              fixedOrder
              narrow="stack"
            />
          </Section>
        ))}
      </div>
    </Page>
  );
}

function titleOf(group: string): string {
  return group.charAt(0).toUpperCase() + humanize(group).slice(1);
}

function article(role: string): string {
  return `${/^[aeiou]/.test(role) ? "an" : "a"} ${role}`;
}

type Role = Permissions["roles"][number]["role"];

function columnsOf(roles: readonly Role[]): Column<OperationPermission>[] {
  const may = (yes: boolean) => (yes ? "yes" : <span className="muted">no</span>);
  return [
    {
      id: "operation",
      header: "Operation",
      rowHeader: true,
      value: nameOf,
      cell: of => <span title={`${of.method} ${of.path}`}>{nameOf(of)}</span>,
    },
    { id: "description", header: "What it does", wrap: true, value: of => plain(of.description) },
    {
      id: "visitor",
      header: "visitor",
      hint: "Without signing in",
      value: of => (of.visitors ? "yes" : "no"),
      cell: of => may(of.visitors),
    },
    ...roles.map(
      (role): Column<OperationPermission> => ({
        id: role,
        header: role,
        value: of => (of.roles.includes(role) ? "yes" : "no"),
        cell: of => may(of.roles.includes(role)),
      }),
    ),
  ];
}

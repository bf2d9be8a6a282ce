import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { rulesQuery } from "@/api/intakeQueries";
import { sessionQuery } from "@/api/session";
import type { RuleView } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page } from "@/parts/Page";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { StateBadge } from "@/parts/StateBadge";
import classes from "./intake.module.css";
import { RuleForm } from "./RuleForm";
import { budgetText, obstacle, takesText } from "./rule";
import { FormLink, Obstacle } from "./Watched";

/** Poll: there are no events for watched lists. */
const REFRESH_MS = 15_000;
/** Files, words and authors that the table names; the rule's page has all. */
const LISTED = 4;
const route = getRouteApi("/rules");

export function RulesPage() {
  const { data: rules } = useSuspenseQuery({ ...rulesQuery, refetchInterval: REFRESH_MS });
  const { form } = route.useSearch();
  const { user } = useSuspenseQuery(sessionQuery).data;
  const adds = user?.scopes.includes("admin") ?? false;
  if (form && adds) {
    return (
      <Page
        title="Add a rule"
        lead="Which series of a mailing list are measured without anybody submitting them."
        trail={<Link to="/rules">Watched lists</Link>}
      >
        <RuleForm owner={user?.name ?? ""} />
      </Page>
    );
  }
  const on = rules.filter(each => each.enabled_at !== null).length;
  return (
    <Page
      title="Watched lists"
      lead={
        <>
          Rules that take series from mailing lists.{" "}
          {rules.length > 0 && `${count(rules.length, "rule")}, ${on} switched on. `}
          <a href="/docs/intake/#watched-lists">How rules decide</a>
        </>
      }
      actions={
        <>
          <Link to="/watched-trees">Watched trees</Link>
          {adds && (
            <FormLink to="/rules" filled>
              Add a rule
            </FormLink>
          )}
        </>
      }
    >
      {rules.length === 0 ? (
        <EmptyState
          title="No rules"
          action={
            adds && (
              <FormLink to="/rules" filled>
                Add a rule
              </FormLink>
            )
          }
        >
          An administrator adds one here, with <code>wqlab rule add FILE</code>, or as a file in{" "}
          <code>intake/rules/</code> of the data folder.
        </EmptyState>
      ) : (
        <DataTable
          caption="Rules"
          captionHidden
          columns={COLUMNS}
          rows={rules}
          rowKey={of => of.rule.name}
          narrow="stack"
        />
      )}
    </Page>
  );
}

const COLUMNS: Column<RuleView>[] = [
  {
    id: "name",
    header: "Rule",
    rowHeader: true,
    value: of => of.rule.name,
    cell: of => (
      <>
        <Link to="/rules/$name" params={{ name: of.rule.name }} className={classes.long}>
          {of.rule.name}
        </Link>
        {of.rule.summary && <div className={classes.summary}>{oneLine(of.rule.summary)}</div>}
      </>
    ),
  },
  {
    id: "state",
    header: "State",
    value: of => (of.enabled_at === null ? "off" : "on"),
    cell: of => <StateBadge state={of.enabled_at === null ? "off" : "on"} />,
  },
  {
    id: "obstacle",
    header: "Stands still",
    hint: "Why it takes nothing at the moment",
    wrap: true,
    value: of => obstacle(of, new Date())?.text,
    cell: of => <Standstill of={of} />,
  },
  {
    id: "list",
    header: "List",
    value: of => of.rule.archive,
    cell: of => (
      <>
        {of.rule.archive}
        {of.enabled_at !== null && (
          <span className={classes.second}>
            read <RelativeTime at={of.watched?.read_at} absent="not yet" />
          </span>
        )}
      </>
    ),
  },
  {
    id: "takes",
    header: "Takes",
    hint: "Files, words in subjects and authors: each kind that is given has to match",
    wrap: true,
    value: of => takesText(of.rule),
    cell: of => <span className={classes.long}>{takesText(of.rule, LISTED)}</span>,
  },
  {
    id: "measures",
    header: "Measures",
    wrap: true,
    value: of => measuresText(of),
    cell: of => <span className={classes.long}>{measuresText(of)}</span>,
  },
  {
    id: "budget",
    header: "Used in 24 h",
    hint: "Device time that its submissions of the last 24 hours were quoted, of its budget",
    numeric: true,
    value: of => of.minutes_used,
    text: budgetText,
    cell: budgetText,
  },
];

function measuresText({ rule }: RuleView): string {
  const named = oneLine((rule.targets ?? []).join(", "));
  if (rule.what_it_touches) return named ? `what it touches, of ${named}` : "what it touches";
  return named || "what is asked for";
}

function Standstill({ of }: { of: RuleView }) {
  const found = obstacle(of, useNow(30_000));
  return found && <Obstacle of={found} />;
}

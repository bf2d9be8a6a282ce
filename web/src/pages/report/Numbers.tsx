/** Every comparison of the report in one table: filtered and ordered by the address. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Verdict } from "@/api/types";
import { grouped } from "@/lib/numbers";
import { EVIDENCE, VERDICTS } from "@/lib/words";
import { type Column, DataTable, type Sort } from "@/parts/DataTable";
import { Section } from "@/parts/Page";
import {
  armColumn,
  bootsColumn,
  changeColumn,
  evidenceColumn,
  intervalColumn,
  roleColumn,
  unitColumn,
  verdictColumn,
} from "./columns";
import { type Filter, filtered, isFiltered } from "./filter";
import type { Cell } from "./model";
import classes from "./Numbers.module.css";
import { type ReportSearch, VERDICT_NAMES } from "./route";
import { Typed } from "./Typed";

const NO_FILTER: Filter = {
  q: "",
  topology: "",
  scenario: "",
  metric: "",
  question: "",
  role: "",
  evidence: "",
  verdict: [],
};

export function Numbers({ cells, search }: { cells: readonly Cell[]; search: ReportSearch }) {
  const navigate = useNavigate({ from: "/submissions/$id/report" });
  const set = (change: Partial<ReportSearch>, replace = false) =>
    void navigate({ to: ".", search: before => ({ ...before, ...change }), replace, resetScroll: false });
  const { q, topology, scenario, metric, question, role, evidence, verdict } = search;
  const rows = useMemo(
    () => filtered(cells, { q, topology, scenario, metric, question, role, evidence, verdict }),
    [cells, q, topology, scenario, metric, question, role, evidence, verdict],
  );
  const columns = useMemo(() => columnsOf(cells), [cells]);
  const options = useMemo(() => optionsOf(cells), [cells]);
  const present = VERDICT_NAMES.filter(each => options.verdicts.has(each));

  return (
    <Section
      id="numbers"
      title="All numbers"
      lead="A row per comparison. n counts boots: a boot is one value, the median of its repetitions."
    >
      <search className={`${classes.filters} no-print`}>
        <Typed label="Search" value={q} onValue={text => set({ q: text }, true)} />
        <Choice
          label="Topology"
          value={topology}
          from={options.topologies}
          onValue={topology => set({ topology })}
        />
        <Choice
          label="Scenario"
          value={scenario}
          from={options.scenarios}
          onValue={scenario => set({ scenario })}
        />
        <Choice label="Metric" value={metric} from={options.metrics} onValue={metric => set({ metric })} />
        <Choice
          label="Compared"
          value={question}
          from={options.questions}
          name={of => (of === "kernel" ? "kernels" : "settings")}
          onValue={question => set({ question })}
        />
        <Choice label="Role" value={role} from={options.roles} onValue={role => set({ role })} />
        <Choice
          label="Evidence"
          value={evidence}
          from={options.evidences}
          name={of => EVIDENCE[of].word}
          onValue={evidence => set({ evidence })}
        />
        <fieldset className={classes.verdicts}>
          <legend>Verdict</legend>
          {present.map(each => (
            <label key={each}>
              <input
                type="checkbox"
                checked={verdict.includes(each)}
                onChange={event =>
                  set({
                    verdict: event.target.checked
                      ? [...verdict, each]
                      : verdict.filter((other: Verdict) => other !== each),
                  })
                }
              />
              {VERDICTS[each].word} <span className="muted">{grouped(options.verdicts.get(each) ?? 0)}</span>
            </label>
          ))}
        </fieldset>
      </search>
      <DataTable
        caption={
          rows.length === cells.length
            ? `${grouped(cells.length)} comparisons`
            : `${grouped(rows.length)} of ${grouped(cells.length)} comparisons`
        }
        columns={columns}
        rows={rows}
        rowKey={cell => cell.key}
        sort={readSort(search.sort)}
        onSort={sort => set({ sort: sort ? `${sort.desc ? "-" : ""}${sort.id}` : "" })}
        empty="No comparison matches."
        maxHeight="min(40rem, 80vh)"
        actions={
          isFiltered(search) && (
            <button type="button" className={classes.clear} onClick={() => set(NO_FILTER)}>
              Clear filters
            </button>
          )
        }
      />
    </Section>
  );
}

function readSort(text: string): Sort | null {
  if (text === "") return null;
  return text.startsWith("-") ? { id: text.slice(1), desc: true } : { id: text, desc: false };
}

function columnsOf(cells: readonly Cell[]): Column<Cell>[] {
  const plans = new Set(cells.map(({ of }) => of.plan));
  const questions = new Set(cells.map(({ of }) => of.question));
  const settings = cells.some(({ of }) => of.setting !== "");
  const study = questions.has("setting");
  const both = study && questions.has("kernel");
  const column = (id: string, header: string, value: (cell: Cell) => string): Column<Cell> => ({
    id,
    header,
    value,
  });
  return [
    column("topology", "topology", ({ of }) => of.device_type),
    ...(plans.size > 1 ? [column("plan", "plan", ({ of }) => of.plan)] : []),
    column("scenario", "scenario", ({ of }) => of.scenario),
    ...(settings ? [column("setting", "setting", ({ of }) => of.setting)] : []),
    ...(study
      ? [
          column("reference", "against", ({ of }) =>
            of.question === "kernel" ? "baseline kernel" : `${of.reference} (${of.kernel})`,
          ),
        ]
      : []),
    {
      id: "metric",
      header: "metric",
      rowHeader: true,
      value: ({ of }) => of.metric,
      cell: ({ key, of }) => (
        <Link
          from="/submissions/$id/report"
          to="."
          search={before => ({ ...before, cell: key })}
          hash="cell"
          title={`Look at ${of.metric}`}
        >
          {of.metric}
        </Link>
      ),
    },
    armColumn("baseline", both ? "baseline, reference" : study ? "reference" : "baseline"),
    armColumn("candidate", both ? "candidate, setting" : study ? "setting's" : "candidate"),
    unitColumn,
    changeColumn,
    intervalColumn,
    bootsColumn,
    verdictColumn,
    evidenceColumn,
    roleColumn,
  ];
}

function optionsOf(cells: readonly Cell[]) {
  const each = <T extends string>(value: (cell: Cell) => T) => [...new Set(cells.map(value))];
  const verdicts = new Map<Verdict, number>();
  for (const { of } of cells)
    if (of.verdict !== null) verdicts.set(of.verdict, (verdicts.get(of.verdict) ?? 0) + 1);
  return {
    topologies: each(({ of }) => of.device_type),
    scenarios: each(({ of }) => of.scenario),
    metrics: each(({ of }) => of.metric),
    questions: each(({ of }) => of.question),
    roles: each(({ of }) => of.role),
    evidences: each(({ of }) => of.evidence),
    verdicts,
  };
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T | "";
  from: readonly T[];
  name?(option: T): string;
  onValue(value: T | ""): void;
}

/** Not there where there is nothing to choose. */
function Choice<T extends string>({ label, value, from, name = of => of, onValue }: ChoiceProps<T>) {
  if (from.length < 2 && value === "") return null;
  const options = value === "" || from.includes(value) ? from : [value, ...from];
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <select value={value} onChange={event => onValue(event.target.value as T | "")}>
        <option value="">any</option>
        {options.map(option => (
          <option key={option} value={option}>
            {name(option)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Table of all comparisons; filters and sort order are in the URL. */
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Verdict } from "@/api/types";
import { count, grouped, metricName } from "@/lib/numbers";
import { formatSort, parseSort } from "@/lib/sort";
import { EVIDENCE, VERDICTS } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { CheckboxFilter, FilterBar, SelectFilter, TextFilter } from "@/parts/FilterBar";
import { Section } from "@/parts/Page";
import {
  armColumn,
  bootsColumn,
  changeColumn,
  evidenceColumn,
  intervalColumn,
  metricColumn,
  roleColumn,
  verdictColumn,
} from "./columns";
import { type Filter, filterCells, isFiltered } from "./filter";
import type { Cell } from "./model";
import classes from "./Numbers.module.css";
import { type ReportSearch, VERDICT_NAMES } from "./search";

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
  const navigate = useNavigate({ from: "/r/$id" });
  const set = (change: Partial<ReportSearch>, replace = false) =>
    void navigate({ to: ".", search: before => ({ ...before, ...change }), replace, resetScroll: false });
  const { q, topology, scenario, metric, question, role, evidence, verdict } = search;
  const rows = useMemo(
    () => filterCells(cells, { q, topology, scenario, metric, question, role, evidence, verdict }),
    [cells, q, topology, scenario, metric, question, role, evidence, verdict],
  );
  const columns = useMemo(() => columnsOf(cells), [cells]);
  const options = useMemo(() => optionsOf(cells), [cells]);

  return (
    <Section
      id="numbers"
      title="All comparisons"
      lead="One row per comparison. n is the number of boots; the value of a boot is the median of its repetitions."
    >
      <FilterBar>
        <TextFilter
          label="Search"
          hint="Metric, setting or reason"
          value={q}
          onValue={text => set({ q: text }, true)}
        />
        <SelectFilter
          label="Topology"
          value={topology}
          from={options.topologies}
          onValue={topology => set({ topology })}
        />
        <SelectFilter
          label="Scenario"
          value={scenario}
          from={options.scenarios}
          onValue={scenario => set({ scenario })}
        />
        <SelectFilter
          label="Metric"
          value={metric}
          from={options.metrics}
          name={metricName}
          onValue={metric => set({ metric })}
        />
        <SelectFilter
          label="Compared"
          value={question}
          from={options.questions}
          name={of => (of === "kernel" ? "kernels" : "settings")}
          onValue={question => set({ question })}
        />
        <SelectFilter label="Role" value={role} from={options.roles} onValue={role => set({ role })} />
        <SelectFilter
          label="Evidence"
          value={evidence}
          from={options.evidences}
          name={of => EVIDENCE[of].word}
          onValue={evidence => set({ evidence })}
        />
        <CheckboxFilter
          label="Verdict"
          selected={verdict}
          counts={options.verdicts}
          name={of => VERDICTS[of].word}
          onSelected={verdict => set({ verdict })}
        />
      </FilterBar>
      <DataTable
        caption={captionOf(rows, cells, options)}
        columns={columns}
        rows={rows}
        rowKey={cell => cell.key}
        sort={parseSort(search.sort)}
        onSort={sort => set({ sort: formatSort(sort) })}
        empty="No matching comparisons."
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

function columnsOf(cells: readonly Cell[]): Column<Cell>[] {
  const topologies = new Set(cells.map(({ of }) => of.device_type));
  const scenarios = new Set(cells.map(({ of }) => of.scenario));
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
    ...(topologies.size > 1 ? [column("topology", "Topology", ({ of }) => of.device_type)] : []),
    ...(scenarios.size > 1 ? [column("scenario", "Scenario", ({ of }) => of.scenario)] : []),
    ...(settings ? [column("setting", "Setting", ({ of }) => of.setting)] : []),
    metricColumn({ hash: "cell" }),
    verdictColumn,
    armColumn("baseline", study && !both ? "Reference" : "Baseline"),
    armColumn("candidate", study && !both ? "Setting" : "Candidate"),
    changeColumn,
    intervalColumn,
    bootsColumn,
    evidenceColumn,
    roleColumn,
    ...(study
      ? [
          column("question", "Compared", ({ of }) =>
            of.question === "kernel" ? "kernels" : `settings, ${of.kernel}`,
          ),
        ]
      : []),
    ...(plans.size > 1 ? [column("plan", "Plan", ({ of }) => of.plan)] : []),
  ];
}

function optionsOf(cells: readonly Cell[]) {
  const each = <T extends string>(value: (cell: Cell) => T) => [...new Set(cells.map(value))];
  const many = new Map<Verdict, number>();
  for (const { of } of cells) if (of.verdict !== null) many.set(of.verdict, (many.get(of.verdict) ?? 0) + 1);
  const verdicts = new Map(
    VERDICT_NAMES.flatMap(name => (many.has(name) ? [[name, many.get(name) ?? 0] as const] : [])),
  );
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

/** Caption: the number of comparisons, and the values shared by all rows in place of their columns. */
function captionOf(
  rows: readonly Cell[],
  cells: readonly Cell[],
  { topologies, scenarios }: ReturnType<typeof optionsOf>,
): string {
  const many = rows.length === cells.length ? "" : `${grouped(rows.length)} of `;
  const alike = [topologies, scenarios].flatMap(each => (each.length === 1 ? each : []));
  return [`${many}${count(cells.length, "comparison")}`, ...alike].join(", ");
}

/** Every comparison of the report in one table: filtered and ordered by the address. */
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Verdict } from "@/api/types";
import { count, grouped } from "@/lib/numbers";
import { readSort, sortText } from "@/lib/sort";
import { EVIDENCE, VERDICTS } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { Choice, FilterBar, Ticks, Typed } from "@/parts/FilterBar";
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
import { type Filter, filtered, isFiltered } from "./filter";
import type { Cell } from "./model";
import classes from "./Numbers.module.css";
import { type ReportSearch, VERDICT_NAMES } from "./route";

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

  return (
    <Section
      id="numbers"
      title="All numbers"
      lead="A row per comparison. n counts boots: a boot is one value, the median of its repetitions."
    >
      <FilterBar>
        <Typed
          label="Search"
          hint="metric, setting, reason"
          value={q}
          onValue={text => set({ q: text }, true)}
        />
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
        <Ticks
          label="Verdict"
          chosen={verdict}
          counts={options.verdicts}
          name={of => VERDICTS[of].word}
          onChosen={verdict => set({ verdict })}
        />
      </FilterBar>
      <DataTable
        caption={captionOf(rows, cells, options)}
        columns={columns}
        rows={rows}
        rowKey={cell => cell.key}
        sort={readSort(search.sort)}
        onSort={sort => set({ sort: sortText(sort) })}
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
    ...(topologies.size > 1 ? [column("topology", "topology", ({ of }) => of.device_type)] : []),
    ...(scenarios.size > 1 ? [column("scenario", "scenario", ({ of }) => of.scenario)] : []),
    ...(settings ? [column("setting", "setting", ({ of }) => of.setting)] : []),
    metricColumn({ hash: "cell" }),
    verdictColumn,
    armColumn("baseline", study && !both ? "reference" : "baseline"),
    armColumn("candidate", study && !both ? "setting's" : "candidate"),
    changeColumn,
    intervalColumn,
    bootsColumn,
    evidenceColumn,
    roleColumn,
    ...(study
      ? [
          column("question", "compared", ({ of }) =>
            of.question === "kernel" ? "kernels" : `settings, ${of.kernel}`,
          ),
        ]
      : []),
    ...(plans.size > 1 ? [column("plan", "plan", ({ of }) => of.plan)] : []),
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

/** How many there are, and what all of them have in common: columns that would say the same in each row are not there. */
function captionOf(
  rows: readonly Cell[],
  cells: readonly Cell[],
  { topologies, scenarios }: ReturnType<typeof optionsOf>,
): string {
  const many = rows.length === cells.length ? "" : `${grouped(rows.length)} of `;
  const alike = [topologies, scenarios].flatMap(each => (each.length === 1 ? each : []));
  return [`${many}${count(cells.length, "comparison")}`, ...alike].join(", ");
}

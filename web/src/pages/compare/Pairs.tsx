import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { FigurePair } from "@/api/types";
import { count, grouped, number, placesOfArms, signed, spread } from "@/lib/numbers";
import { formatSort, parseSort } from "@/lib/sort";
import { EVIDENCE, VERDICTS } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { CheckboxFilter, FilterBar, SelectFilter } from "@/parts/FilterBar";
import { Section } from "@/parts/Page";
import { ArmValue } from "@/parts/Value";
import { VerdictBadge } from "@/parts/VerdictBadge";
import { CHANGE_WORDS, effectText, either, filterPairs, pairKey } from "./pairs";
import { CHANGES, type CompareSearch } from "./search";

interface PairsProps {
  figures: readonly FigurePair[];
  /** Names of the two submissions. */
  names: readonly [string, string];
  search: CompareSearch;
}

export function Pairs({ figures, names, search }: PairsProps) {
  const navigate = useNavigate({ from: "/compare" });
  const set = (change: Partial<CompareSearch>) =>
    void navigate({ to: ".", search: before => ({ ...before, ...change }), resetScroll: false });
  const rows = useMemo(() => filterPairs(figures, search), [figures, search]);
  const columns = useMemo(() => columnsOf(figures, names), [figures, names]);
  const options = useMemo(() => optionsOf(figures), [figures]);
  return (
    <Section
      id="figures"
      title="All figures"
      lead="Each change is against that submission's own baseline. “Difference” is the second change minus the first; it has no interval and is not a verdict."
    >
      <FilterBar>
        <SelectFilter
          label="Topology"
          value={search.topology}
          from={options.topologies}
          onValue={topology => set({ topology })}
        />
        <SelectFilter
          label="Scenario"
          value={search.scenario}
          from={options.scenarios}
          onValue={scenario => set({ scenario })}
        />
        <SelectFilter
          label="Metric"
          value={search.metric}
          from={options.metrics}
          onValue={metric => set({ metric })}
        />
        <SelectFilter label="Role" value={search.role} from={options.roles} onValue={role => set({ role })} />
        <CheckboxFilter
          label="Verdict change"
          selected={search.change}
          counts={options.changes}
          name={of => CHANGE_WORDS[of].word}
          onSelected={change => set({ change })}
        />
      </FilterBar>
      <DataTable
        caption={
          (rows.length === figures.length
            ? count(figures.length, "figure")
            : `${grouped(rows.length)} of ${count(figures.length, "figure")}`) + sharedValues(figures)
        }
        columns={columns}
        rows={rows}
        rowKey={pairKey}
        sort={parseSort(search.sort)}
        onSort={sort => set({ sort: formatSort(sort) })}
        empty={figures.length === 0 ? "Neither submission has figures yet." : "No matching figures."}
        maxHeight="min(40rem, 80vh)"
      />
    </Section>
  );
}

/** Caption suffix with the values shared by all rows. */
function sharedValues(figures: readonly FigurePair[]): string {
  const named: ((of: FigurePair) => string)[] = [of => of.device_type, of => of.scenario];
  const same = named.map(value => new Set(figures.map(value))).filter(values => values.size === 1);
  return same.flatMap(values => [...values].map(word => `, ${word}`)).join("");
}

function optionsOf(figures: readonly FigurePair[]) {
  const each = <T extends string>(value: (of: FigurePair) => T) => [...new Set(figures.map(value))];
  const many = Map.groupBy(figures, of => of.change);
  return {
    topologies: each(of => of.device_type),
    scenarios: each(of => of.scenario),
    metrics: each(of => of.metric),
    roles: each(of => either(of).role),
    changes: new Map(
      CHANGES.flatMap(name => (many.has(name) ? [[name, many.get(name)?.length ?? 0] as const] : [])),
    ),
  };
}

function columnsOf(figures: readonly FigurePair[], names: readonly [string, string]): Column<FigurePair>[] {
  const column = (id: string, header: string, value: (of: FigurePair) => string): Column<FigurePair> => ({
    id,
    header,
    value,
  });
  const several = (value: (of: FigurePair) => string) => new Set(figures.map(value)).size > 1;
  const settings = figures.some(of => of.setting !== "");
  const study = figures.some(of => of.question === "setting");
  return [
    ...(several(of => of.device_type) ? [column("topology", "Topology", of => of.device_type)] : []),
    ...(several(of => of.scenario) ? [column("scenario", "Scenario", of => of.scenario)] : []),
    ...(settings ? [column("setting", "Setting", of => of.setting)] : []),
    ...(study
      ? [
          column("question", "Compared", of =>
            of.question === "kernel" ? "kernels" : `settings, ${of.kernel}`,
          ),
        ]
      : []),
    {
      id: "metric",
      header: "Metric",
      rowHeader: true,
      value: of => of.metric,
      text: of => (either(of).unit ? `${of.metric} (${either(of).unit})` : of.metric),
      cell: of => (
        <>
          {of.metric} <span className="muted">{either(of).unit}</span>
        </>
      ),
    },
    ...sideColumns("first", names[0]),
    ...sideColumns("second", names[1]),
    {
      id: "change",
      header: "Verdict change",
      value: of => CHANGE_WORDS[of.change].word,
      cell: of => (
        <span title={CHANGE_WORDS[of.change].meaning} className="nowrap">
          <span aria-hidden="true">{CHANGE_WORDS[of.change].sign} </span>
          {CHANGE_WORDS[of.change].word}
        </span>
      ),
    },
    {
      id: "difference",
      header: "Difference",
      hint: "Second change minus first change. It has no interval because the submissions are not paired.",
      numeric: true,
      value: of => of.effect_change,
      text: of =>
        of.effect_change === null ? "" : `${signed(of.effect_change)} ${of.effect_change_unit}`.trimEnd(),
    },
    ...(figures.some(of => of.intervals_overlap !== null)
      ? [
          column("overlap", "Intervals", of =>
            of.intervals_overlap === null ? "" : of.intervals_overlap ? "overlap" : "disjoint",
          ),
        ]
      : []),
    {
      id: "evidence",
      header: "Evidence",
      value: of => EVIDENCE[either(of).evidence].word,
      cell: of => <EvidenceMark evidence={either(of).evidence} />,
    },
  ];
}

/** Columns of one submission: candidate value, change and verdict. */
function sideColumns(side: "first" | "second", name: string): Column<FigurePair>[] {
  return [
    {
      id: `${side}-value`,
      header: name,
      hint: "Candidate or setting: mean and standard deviation over boots",
      numeric: true,
      value: of => of[side]?.candidate?.mean,
      text: of => spreadOf(of, side),
      cell: of => <ArmValue arm={of[side]?.candidate} of={arms(of)} exact={of[side]?.exact ?? false} />,
    },
    {
      id: `${side}-effect`,
      header: "Change",
      numeric: true,
      value: of => of[side]?.effect,
      text: of => effectText(of[side]),
    },
    {
      id: `${side}-verdict`,
      header: "Verdict",
      value: of => of[side]?.verdict,
      text: of => {
        const verdict = of[side]?.verdict;
        return verdict == null ? "" : VERDICTS[verdict].word;
      },
      cell: of =>
        of[side]?.verdict == null ? (
          <span className="muted">–</span>
        ) : (
          <VerdictBadge verdict={of[side].verdict} />
        ),
    },
  ];
}

function spreadOf(of: FigurePair, side: "first" | "second"): string {
  const arm = of[side]?.candidate;
  if (arm == null) return "";
  const decimals = placesOfArms(arms(of));
  return of[side]?.exact ? number(arm.mean, decimals) : spread(arm, decimals);
}

function arms(of: FigurePair) {
  return [of.first?.baseline, of.first?.candidate, of.second?.baseline, of.second?.candidate];
}

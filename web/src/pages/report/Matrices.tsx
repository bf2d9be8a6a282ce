/** Matrix of verdicts: devices by scenarios, each cell a link to its comparison. */
import { Link, useNavigate } from "@tanstack/react-router";
import { Fragment, type ReactNode, useMemo } from "react";
import type { Report } from "@/api/types";
import { deviceKind } from "@/lib/instrumented";
import { effect, metricName } from "@/lib/numbers";
import { EVIDENCE } from "@/lib/words";
import { EvidenceMark } from "@/parts/EvidenceMark";
import { Section } from "@/parts/Page";
import { Scroll } from "@/parts/Scroll";
import { VerdictBadge } from "@/parts/VerdictBadge";
import classes from "./Matrices.module.css";
import { type Cell, judgedMetrics, type Matrix, type MatrixRow, matricesOf } from "./model";
import { MATCH_HASH } from "./OnThisPage";
import type { ReportSearch } from "./search";

interface MatricesProps {
  report: Report;
  cells: readonly Cell[];
  selected: Cell;
  search: ReportSearch;
}

export function Matrices({ report, cells, selected, search }: MatricesProps) {
  const navigate = useNavigate({ from: "/r/$id" });
  const metrics = useMemo(() => judgedMetrics(cells), [cells]);
  const shown = metrics.includes(search.show) ? search.show : "";
  const matrices = useMemo(() => matricesOf(report, cells, shown), [report, cells, shown]);
  const several = new Set(matrices.map(each => each.plan)).size > 1;
  const kinds = [...new Set(matrices.flatMap(each => each.rows.flatMap(row => row.evidence ?? [])))];
  return (
    <Section
      id="matrix"
      title="Verdicts by topology and scenario"
      actions={
        <label className={classes.choice}>
          Metric{" "}
          <select
            value={shown}
            onChange={event =>
              void navigate({ to: ".", search: before => ({ ...before, show: event.target.value }) })
            }
          >
            <option value="">Primary metrics and regressions</option>
            {metrics.map(metric => (
              <option key={metric} value={metric}>
                {metricName(metric)}
              </option>
            ))}
          </select>
        </label>
      }
    >
      {matrices.map(matrix => (
        <OneMatrix key={matrix.id} matrix={matrix} selected={selected} several={several} />
      ))}
      <dl className={classes.legend}>
        {kinds.map(kind => (
          <Fragment key={kind}>
            <dt>
              <EvidenceMark evidence={kind} />
            </dt>
            <dd>{EVIDENCE[kind].meaning}</dd>
          </Fragment>
        ))}
      </dl>
    </Section>
  );
}

function OneMatrix({ matrix, selected, several }: { matrix: Matrix; selected: Cell; several: boolean }) {
  const { scenarios, rows } = matrix;
  const settings = scenarios.some(each => each.settings.length > 1 || each.settings[0] !== "");
  const columns = scenarios.reduce((sum, each) => sum + each.settings.length, 0);
  const title = titleOf(matrix, several);
  return (
    <div className={classes.matrix}>
      <p className={classes.title}>{title}</p>
      <Scroll name={title} className={classes.scroller}>
        <table className={classes.table}>
          <caption className="hidden-visually">{title}</caption>
          <thead>
            <tr>
              <th scope="col" rowSpan={settings ? 2 : 1} className={classes.corner}>
                {" "}
                Topology{" "}
              </th>
              {scenarios.map(each => (
                <th
                  key={each.name}
                  scope={settings ? "colgroup" : "col"}
                  colSpan={each.settings.length}
                  title={each.summary || undefined}
                  className={classes.scenario}
                >
                  {each.name}
                </th>
              ))}
            </tr>
            {settings && (
              <tr>
                {scenarios.flatMap(each =>
                  each.settings.map((setting, at) => (
                    <th
                      key={`${each.name} ${setting}`}
                      scope="col"
                      className={at === 0 ? classes.first : classes.setting}
                    >
                      <Setting of={setting} />
                    </th>
                  )),
                )}
              </tr>
            )}
          </thead>
          <tbody>
            {rows.map(row => (
              <tr key={`${row.target.run_id} ${row.metric}`}>
                <th scope="row" className={classes.device}>
                  <Device row={row} />
                </th>
                {row.metric === null ? (
                  <td colSpan={columns}>
                    <VerdictBadge verdict={row.target.comparisons.length > 0 ? null : row.target.verdict} />{" "}
                    <span className="muted">no comparisons</span>
                  </td>
                ) : (
                  row.cells.map((cell, at) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: a matrix's columns do not change
                    <td key={at} className={isFirst(matrix, at) ? classes.first : undefined}>
                      {cell ? (
                        <Verdict cell={cell} chosen={cell.key === selected.key} />
                      ) : (
                        <span className="muted">–</span>
                      )}
                    </td>
                  ))
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </div>
  );
}

function titleOf({ plan, question, kernel, reference }: Matrix, several: boolean): string {
  const title =
    question === "kernel"
      ? "candidate against baseline"
      : `settings against ${reference}, on the ${kernel} kernel`;
  return several ? `${plan}: ${title}` : `${title.charAt(0).toUpperCase()}${title.slice(1)}`;
}

function isFirst({ scenarios }: Matrix, at: number): boolean {
  let column = 0;
  for (const each of scenarios) {
    if (column === at) return true;
    column += each.settings.length;
  }
  return false;
}

/** A setting that can wrap after commas. */
export function Setting({ of }: { of: string }): ReactNode {
  if (of === "") return <span className="muted">none</span>;
  return (
    <code className={classes.knobs}>
      {of.split(",").map((pair, at, all) => (
        <Fragment key={pair}>
          {pair}
          {at < all.length - 1 && (
            <>
              ,<wbr />
            </>
          )}
        </Fragment>
      ))}
    </code>
  );
}

function Device({ row: { target, metric, evidence } }: { row: MatrixRow }) {
  return (
    <>
      <Link to="." search hash={`run-${target.run_id}`} activeOptions={MATCH_HASH}>
        {target.device_type}
      </Link>
      {target.emulated && <span className={classes.emulated}> {deviceKind(target)}</span>}
      {metric && evidence && (
        <span className={classes.metric}>
          {metricName(metric)} <EvidenceMark evidence={evidence} />
        </span>
      )}
    </>
  );
}

function Verdict({ cell: { key, of, target }, chosen }: { cell: Cell; chosen: boolean }) {
  const figure = of.evidence === "none" ? "" : effect(of);
  return (
    <Link
      from="/r/$id"
      to="."
      search={before => ({ ...before, cell: key })}
      hash="cell"
      className={classes.verdict}
      aria-current={chosen || undefined}
    >
      <span className="hidden-visually">
        {[metricName(of.metric), of.scenario, of.setting, `on ${target.device_type}`]
          .filter(Boolean)
          .join(" ")}
        :{" "}
      </span>
      <VerdictBadge verdict={of.verdict} /> {figure && <span className={classes.figure}>{figure}</span>}
    </Link>
  );
}

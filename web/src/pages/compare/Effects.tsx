import { useMemo } from "react";
import type { FigurePair } from "@/api/types";
import { ForestFigure, type ForestRow, isDrawn } from "@/figures/ForestFigure";
import { Section } from "@/parts/Page";
import { either, filterPairs, pairKey } from "./pairs";
import type { CompareSearch } from "./search";

/** Maximum number of rows in a figure. The table below shows all. */
const MAX_ROWS = 16;

interface EffectsProps {
  figures: readonly FigurePair[];
  names: readonly [string, string];
  search: CompareSearch;
}

/** Forest plots of both submissions' changes: of the primary metrics or of the selected metric. */
export function Effects({ figures, names, search }: EffectsProps) {
  const groups = useMemo(() => effectGroups(figures, names, search), [figures, names, search]);
  if (groups.length === 0) return null;
  return (
    <Section id="effects" title="Change against own baseline">
      {groups.map(({ metric, rows, left }) => (
        <ForestFigure
          key={metric}
          title={metric}
          rows={rows}
          names="submission"
          description={
            left > 0 ? `${left} more in the table below. Select a topology or scenario to plot them.` : null
          }
        />
      ))}
    </Section>
  );
}

interface EffectGroup {
  metric: string;
  rows: ForestRow[];
  /** Number of rows left out. */
  left: number;
}

/** Group the filtered pairs by metric, as rows of one forest plot each. */
export function effectGroups(
  figures: readonly FigurePair[],
  [first, second]: readonly [string, string],
  search: CompareSearch,
): EffectGroup[] {
  const kernels = figures.some(of => of.question === "kernel");
  const shown = filterPairs(figures, { ...search, change: [] }).filter(
    of =>
      (search.metric !== "" || either(of).role === "primary") &&
      // For a series, plot only kernel comparisons; settings are in the table.
      (!kernels || of.question === "kernel"),
  );
  return [...Map.groupBy(shown, of => of.metric)].flatMap(([metric, pairs]) => {
    const rows = pairs.flatMap(of => {
      const place = [of.device_type, of.scenario, of.setting, of.kernel].filter(Boolean).join(" ");
      return [
        ...(of.first ? [{ key: `${pairKey(of)} first`, name: `${first} on ${place}`, of: of.first }] : []),
        ...(of.second
          ? [{ key: `${pairKey(of)} second`, name: `${second} on ${place}`, of: of.second }]
          : []),
      ];
    });
    return rows.some(isDrawn)
      ? [{ metric, rows: rows.slice(0, MAX_ROWS), left: Math.max(0, rows.length - MAX_ROWS) }]
      : [];
  });
}

import { useMemo } from "react";
import type { FigurePair } from "@/api/types";
import { ForestFigure, type ForestRow, isDrawn } from "@/figures/ForestFigure";
import { Section } from "@/parts/Page";
import { either, pairKey, wanted } from "./pairs";
import type { CompareSearch } from "./route";

/** Rows that a figure can hold and still be read; the table has all of them. */
const MOST = 16;

interface EffectsProps {
  figures: readonly FigurePair[];
  names: readonly [string, string];
  search: CompareSearch;
}

/** Each submission's change against its own baseline, one above the other: of the primary metrics, or of the chosen one. */
export function Effects({ figures, names, search }: EffectsProps) {
  const groups = useMemo(() => effectGroups(figures, names, search), [figures, names, search]);
  if (groups.length === 0) return null;
  return (
    <Section id="effects" title="Change against each one's own baseline">
      {groups.map(({ metric, rows, left }) => (
        <ForestFigure
          key={metric}
          title={metric}
          rows={rows}
          names="submission"
          description={
            left > 0
              ? `${left} more are in the table below; choose a topology or scenario to see them here.`
              : null
          }
        />
      ))}
    </Section>
  );
}

interface EffectGroup {
  metric: string;
  rows: ForestRow[];
  /** Rows that would not fit. */
  left: number;
}

export function effectGroups(
  figures: readonly FigurePair[],
  [first, second]: readonly [string, string],
  search: CompareSearch,
): EffectGroup[] {
  const kernels = figures.some(of => of.question === "kernel");
  const shown = wanted(figures, { ...search, change: [] }).filter(
    of =>
      (search.metric !== "" || either(of).role === "primary") &&
      // Of a series the kernels are the question; its settings are in the table.
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
      ? [{ metric, rows: rows.slice(0, MOST), left: Math.max(0, rows.length - MOST) }]
      : [];
  });
}

/** Workqueue activity during warm-up and traced repetitions. Explanatory only. */
import { useState } from "react";
import type { TargetReport } from "@/api/types";
import { WorkqueuesFigure } from "@/figures/WorkqueuesFigure";
import { ShowMore } from "@/parts/ShowMore";

/** Number of figures shown initially. */
const INITIALLY_SHOWN = 1;

export function Workqueues({ target }: { target: TargetReport }) {
  const [opened, setOpened] = useState(false);
  const cells = target.workqueues.filter(cell => cell.series.length > 0);
  if (cells.length === 0) return null;
  const shown = opened ? cells : cells.slice(0, INITIALLY_SHOWN);
  const hidden = cells.length - shown.length;
  return (
    <div>
      <h3>Workqueues</h3>
      {shown.map(cell => (
        <WorkqueuesFigure
          key={`${cell.scenario} ${cell.setting}`}
          title={["Workqueues over time:", cell.scenario, cell.setting].filter(Boolean).join(" ")}
          cell={cell}
          emulated={target.emulated}
        />
      ))}
      <ShowMore hidden={hidden} onShow={() => setOpened(true)} />
    </div>
  );
}

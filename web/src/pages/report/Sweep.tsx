/** The results of a sweep: each judged metric over the topology, with a sentence on where its verdict changes. */
import { memo, useState } from "react";
import type { Report, SweepCurve, SweepReport } from "@/api/types";
import { SweepFigure } from "@/figures/SweepFigure";
import { metricName } from "@/lib/numbers";
import { Section } from "@/parts/Page";
import { ShowMore } from "@/parts/ShowMore";

/** Number of figures shown initially. */
const INITIALLY_SHOWN = 4;

export const Sweep = memo(function Sweep({ report }: { report: Report }) {
  const [opened, setOpened] = useState(false);
  const { sweep } = report;
  if (!sweep) return null;
  const shown = opened ? sweep.curves : sweep.curves.slice(0, INITIALLY_SHOWN);
  return (
    <Section
      id="sweep"
      title={`Sweep: ${sweep.title}`}
      lead={
        sweep.curves.length > 0
          ? "Ranges follow from the verdicts alone: “the same” is equivalent or below the threshold, and a point that was not decided belongs to no range."
          : "No point has a figure yet."
      }
    >
      {shown.map(curve => (
        <SweepFigure key={keyOf(curve)} name={nameOf(curve, sweep)} curve={curve} axis={sweep.axis} />
      ))}
      <ShowMore hidden={sweep.curves.length - shown.length} onShow={() => setOpened(true)} />
    </Section>
  );
});

function keyOf({ plan, scenario, setting, metric, question, reference, kernel }: SweepCurve): string {
  return [plan, scenario, setting, metric, question, reference, kernel].join(" ");
}

/** Return what the curve is of: `fsync kernel_instructions_per_op`, with the plan if there are several. */
export function nameOf(curve: SweepCurve, { curves }: SweepReport): string {
  const several = (of: (each: SweepCurve) => unknown) => new Set(curves.map(of)).size > 1;
  const kernel = several(each => each.kernel) ? ` on the ${curve.kernel} kernel` : "";
  const against = curve.question === "setting" ? ` against ${curve.reference}${kernel}` : "";
  return [
    several(each => each.plan) ? curve.plan : "",
    curve.scenario,
    `${curve.setting}${against}`,
    metricName(curve.metric),
  ]
    .filter(Boolean)
    .join(" ");
}

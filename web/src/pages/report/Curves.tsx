/** Curves of a plan whose scenarios are points of an ordered quantity. */
import type { TargetReport } from "@/api/types";
import { CurveFigure } from "@/figures/CurveFigure";
import { metricName } from "@/lib/numbers";

export function Curves({ target }: { target: TargetReport }) {
  const { curves, plan, emulated } = target;
  if (!plan.curve) return null;
  const { over, metrics } = plan.curve;
  const several = new Set(curves.map(curve => curve.kernel)).size > 1;
  const of = (name: string) => plan.metrics.find(each => each.name === name);
  const absent = metrics.filter(name => emulated && of(name)?.class === "performance");
  return (
    <>
      {curves.map(curve => (
        <CurveFigure
          key={`${curve.metric} ${curve.kernel}`}
          title={`${metricName(curve.metric)}${curve.unit && ` (${curve.unit})`} over ${curve.over}${several ? `, ${curve.kernel} kernel` : ""}`}
          summary={of(curve.metric)?.summary ?? metricName(curve.metric)}
          curve={curve}
        />
      ))}
      {absent.length > 0 && (
        <p className="muted">
          No curve of {absent.map(metricName).join(" and ")} over {over}: timings on an emulated device are
          not evidence.
        </p>
      )}
    </>
  );
}

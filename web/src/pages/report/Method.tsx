import { memo } from "react";
import type { Report } from "@/api/types";
import { clean } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { Section } from "@/parts/Page";
import { Scroll } from "@/parts/Scroll";
import classes from "./Kernels.module.css";

/** Statistical method, and commands to recompute the verdicts. */
export const Method = memo(function Method({ report }: { report: Report }) {
  const commands = recomputeCommands(report);
  return (
    <Section id="method" title="Method" lead={report.method}>
      <p>
        <a href="/docs/trust/">How far to trust a verdict</a>: measured false claims, smallest effects and
        boots saved.
      </p>
      {commands && (
        <div>
          <div className={classes.head}>
            <h3>Recompute the verdicts from all samples</h3>
            <CopyButton text={commands} name="Copy commands" />
          </div>
          <Scroll name="Commands" className={classes.text}>
            <pre>{clean(commands)}</pre>
          </Scroll>
        </div>
      )}
    </Section>
  );
});

/**
 * Return the commands to recompute the verdicts. All targets go into one comparison, because p values are adjusted
 * over the whole submission.
 */
export function recomputeCommands({ targets }: Report): string {
  const measured = targets.filter(target => target.values.length > 0);
  if (measured.length === 0) return "";
  const references = new Map(
    measured.flatMap(target =>
      target.comparisons.filter(of => of.question === "setting").map(of => [of.plan, of.reference] as const),
    ),
  );
  const against = [...references].map(([plan, setting]) =>
    references.size > 1 ? ` --reference '${plan}:${setting}'` : ` --reference '${setting}'`,
  );
  const files = measured.map(({ run_id }) => `run${run_id}.csv`);
  return [
    ...measured.map(({ run_id }, at) => `wqlab samples ${run_id} -o ${files[at]}`),
    `wqlab compare ${files.join(" ")}${against.join("")}`,
  ].join("\n");
}

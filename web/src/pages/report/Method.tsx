import { memo } from "react";
import type { Report } from "@/api/types";
import { clean } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { Section } from "@/parts/Page";
import { Scroll } from "@/parts/Scroll";
import classes from "./Kernels.module.css";

/** How the verdicts were reached, and how to reach them oneself. */
export const Method = memo(function Method({ report }: { report: Report }) {
  const commands = recomputing(report);
  return (
    <Section id="method" title="Method" lead={report.method}>
      {commands && (
        <div>
          <div className={classes.head}>
            <h3>Compute the verdicts again, from every sample</h3>
            <CopyButton text={commands} name="Copy the commands" />
          </div>
          <Scroll name="Commands" className={classes.text}>
            <pre>{clean(commands)}</pre>
          </Scroll>
        </div>
      )}
    </Section>
  );
});

/** All targets at once, because p values are adjusted over everything that a submission asked. */
export function recomputing({ targets }: Report): string {
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

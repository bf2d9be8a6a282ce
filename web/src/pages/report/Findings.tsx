import type { FindingView } from "@/api/types";
import { clean, humanize, oneLine } from "@/lib/words";
import { Scroll } from "@/parts/Scroll";
import classes from "./Findings.module.css";

/** Findings of the console detectors. Their text comes from the device and is escaped. */
export function Findings({ findings }: { findings: readonly FindingView[] }) {
  if (findings.length === 0) return null;
  return (
    <div className={classes.whole}>
      <h3>Findings</h3>
      {findings.map(finding => (
        <details
          key={`${finding.arm} ${finding.block} ${finding.attempt} ${finding.console_offset}`}
          className={classes.finding}
        >
          <summary>
            <strong>{humanize(finding.kind)}</strong> on {finding.arm}, block {finding.block + 1}, attempt{" "}
            {finding.attempt + 1}: {oneLine(finding.title)}
            {finding.fatal && <span className="muted"> (fatal)</span>}
          </summary>
          <Scroll name="Console excerpt" className={classes.excerpt}>
            <pre>{clean(finding.excerpt)}</pre>
          </Scroll>
        </details>
      ))}
    </div>
  );
}

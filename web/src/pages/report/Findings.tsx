import type { FindingView } from "@/api/types";
import { clean, oneLine, spoken } from "@/lib/words";
import { Scroll } from "@/parts/Scroll";
import classes from "./Findings.module.css";

/** What detectors saw on consoles. The text is the device's: data, nothing else. */
export function Findings({ findings }: { findings: readonly FindingView[] }) {
  if (findings.length === 0) return null;
  return (
    <div className={classes.whole}>
      <h3>Seen on the consoles</h3>
      {findings.map(finding => (
        <details
          key={`${finding.arm} ${finding.block} ${finding.attempt} ${finding.console_offset}`}
          className={classes.finding}
        >
          <summary>
            <strong>{spoken(finding.kind)}</strong> on {finding.arm}, block {finding.block + 1}, attempt{" "}
            {finding.attempt + 1}: {oneLine(finding.title)}
            {finding.fatal && <span className="muted"> (ended the boot)</span>}
          </summary>
          <Scroll name="Console excerpt" className={classes.excerpt}>
            <pre>{clean(finding.excerpt)}</pre>
          </Scroll>
        </details>
      ))}
    </div>
  );
}

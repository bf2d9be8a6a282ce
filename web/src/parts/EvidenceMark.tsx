import type { Evidence } from "@/api/types";
import { EVIDENCE } from "@/lib/words";
import classes from "./EvidenceMark.module.css";

/** The evidence of a value. `explain` shows the explanation; otherwise it is in the tooltip. */
export function EvidenceMark({ evidence, explain = false }: { evidence: Evidence; explain?: boolean }) {
  const { word, meaning } = EVIDENCE[evidence];
  return (
    <span>
      <span className={classes.mark} data-evidence={evidence} title={explain ? undefined : meaning}>
        {word}
      </span>
      {explain && <span className="muted"> {meaning}</span>}
    </span>
  );
}

import type { Evidence } from "@/api/types";
import { EVIDENCE } from "@/lib/words";
import classes from "./EvidenceMark.module.css";

/** What a figure proves where it was taken. `explain` writes the explanation out; otherwise it is in the title. */
export function EvidenceMark({ evidence, explain = false }: { evidence: Evidence; explain?: boolean }) {
  const { word, meaning } = EVIDENCE[evidence];
  return (
    <span className={classes.whole}>
      <span className={classes.mark} data-evidence={evidence} title={explain ? undefined : meaning}>
        {word}
      </span>
      {explain && <span className="muted"> {meaning}</span>}
    </span>
  );
}

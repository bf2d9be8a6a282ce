/** Rows of the table of commits: those that say something, and how many there are between them. */
import type { BisectionCommit } from "@/api/types";

export interface CommitRow {
  /** Null for a gap. */
  commit: BisectionCommit | null;
  /** Position of the commit, or of the first one of the gap. */
  position: number;
  /** Number of commits. */
  count: number;
  /** Probability of all of them. */
  probability: number;
}

/** Probability from which on a commit has a row although it was not measured. */
const LIKELY = 0.02;

/** Return a row for each commit that was tried, is likely or an end, and one for each run of others. Oldest first. */
export function rowsOf(commits: readonly BisectionCommit[]): CommitRow[] {
  const rows: CommitRow[] = [];
  const few = commits.length <= 20;
  for (const commit of commits) {
    const { position, probability } = commit;
    const tried = commit.submissions.length > 0 || commit.unusable !== "";
    const last = rows.at(-1);
    if (few || tried || probability >= LIKELY || position === commits.length) {
      rows.push({ commit, position, count: 1, probability });
    } else if (last && last.commit === null) {
      last.count += 1;
      last.probability += probability;
    } else {
      rows.push({ commit: null, position, count: 1, probability });
    }
  }
  return rows;
}

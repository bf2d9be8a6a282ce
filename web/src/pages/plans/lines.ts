/** URL hashes that select lines of a plan's files: `#xfs-fsync.sh-L12`, `#device.sh-L3-L9`. */

export interface Lines {
  file: string;
  from: number;
  to: number;
}

/** Return the hash for a range of lines, without `#`. */
export function hashOf({ file, from, to }: Lines): string {
  return to === from ? `${file}-L${from}` : `${file}-L${from}-L${to}`;
}

/** Parse a hash; null if it selects no lines. */
export function linesOf(hash: string): Lines | null {
  const found = /^#?(.+?)-L(\d{1,6})(?:-L(\d{1,6}))?$/.exec(decoded(hash));
  if (!found) return null;
  const [first, last] = [Number(found[2]), Number(found[3] ?? found[2])];
  if (first < 1 || last < 1) return null;
  return { file: found[1] as string, from: Math.min(first, last), to: Math.max(first, last) };
}

function decoded(hash: string): string {
  try {
    return decodeURIComponent(hash);
  } catch {
    return hash;
  }
}

/** Format a table as plain text for mail. Columns are separated by two spaces; `right` selects right alignment. */
export function textTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly boolean[],
): string {
  const widths = header.map((title, at) =>
    Math.max(title.length, ...rows.map(row => (row[at] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    widths
      .map((width, at) => (right[at] ? (cells[at] ?? "").padStart(width) : (cells[at] ?? "").padEnd(width)))
      .join("  ")
      .trimEnd();
  const rule = "-".repeat(widths.reduce((sum, width) => sum + width, 2 * (widths.length - 1)));
  return [line(header), rule, ...rows.map(line)].join("\n");
}

/** Replace typographic characters with ASCII, for mail clients and scripts. */
export function toAscii(text: string): string {
  return text
    .replaceAll("\u2212", "-")
    .replaceAll("\u202f", "")
    .replaceAll("\u00a0", " ")
    .replaceAll("±", "+-")
    .replaceAll("\u2248", "~");
}

/** A table as text for a mail: columns aligned, two spaces between them, numbers to the right. */
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

/** What a page shows as ASCII: a mail client or a script need not know typographic signs. */
export function plain(text: string): string {
  return text
    .replaceAll("\u2212", "-")
    .replaceAll("\u202f", "")
    .replaceAll("\u00a0", " ")
    .replaceAll("±", "+-")
    .replaceAll("\u2248", "~");
}

/** Parser for the Markdown subset used in plan READMEs. The result is data; it contains no HTML. */

export type Inline =
  | { kind: "text" | "code" | "strong" | "em"; text: string }
  | { kind: "link"; text: string; href: string };

export type Block =
  | { kind: "heading"; level: number; inlines: Inline[] }
  | { kind: "paragraph"; inlines: Inline[] }
  | { kind: "list"; ordered: boolean; items: Inline[][] }
  | { kind: "code"; text: string };

const FENCE = /^\s*```/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;

/** Parse Markdown into blocks. */
export function blocksOf(markdown: string): Block[] {
  const lines = markdown.split("\n");
  const blocks: Block[] = [];
  let at = 0;
  /** Consume lines while `belongs` is true. */
  const takeWhile = (belongs: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && belongs(lines[at] as string)) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at] as string;
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (line.trim() === "") at += 1;
    else if (FENCE.test(line)) {
      at += 1;
      blocks.push({ kind: "code", text: takeWhile(each => !FENCE.test(each)).join("\n") });
      at += 1;
    } else if (heading) {
      at += 1;
      blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, inlines: inlinesOf(heading[2] ?? "") });
    } else if (item) {
      blocks.push({
        kind: "list",
        ordered: item[1] !== undefined,
        items: itemsOf(takeWhile(each => each.trim() !== "" && !HEADING.test(each) && !FENCE.test(each))),
      });
    } else {
      const text = takeWhile(
        each => each.trim() !== "" && !HEADING.test(each) && !FENCE.test(each) && !ITEM.test(each),
      );
      blocks.push({ kind: "paragraph", inlines: inlinesOf(text.map(each => each.trim()).join(" ")) });
    }
  }
  return blocks;
}

function itemsOf(lines: readonly string[]): Inline[][] {
  const items: string[] = [];
  for (const line of lines) {
    const begins = ITEM.exec(line);
    if (begins) items.push(begins[2] ?? "");
    else items.push(`${items.pop() ?? ""} ${line.trim()}`);
  }
  return items.map(inlinesOf);
}

const INLINE = /`([^`]+)`|\*\*(.+?)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)/g;

/** Return where a link leads: an http(s) address, or a page of the documentation, which the lab serves; else null. */
function target(href: string | undefined): string | null {
  if (/^https?:\/\//.test(href ?? "")) return href ?? null;
  const page = /^\.\.\/\.\.\/docs\/([a-z0-9/-]+)\.md(#[a-z0-9-]+)?$/.exec(href ?? "");
  return page ? `/docs/${page[1]}/${page[2] ?? ""}` : null;
}

/** Parse inline markup: code, strong, emphasis and links. */
export function inlinesOf(text: string): Inline[] {
  const found: Inline[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > end) found.push({ kind: "text", text: text.slice(end, match.index) });
    const [whole, code, strong, em, name, href] = match;
    if (code !== undefined) found.push({ kind: "code", text: code });
    else if (strong !== undefined) found.push({ kind: "strong", text: strong });
    else if (em !== undefined) found.push({ kind: "em", text: em });
    else if (target(href) !== null) found.push({ kind: "link", text: name ?? "", href: target(href) ?? "" });
    else found.push({ kind: "text", text: name ?? whole });
    end = match.index + whole.length;
  }
  if (end < text.length) found.push({ kind: "text", text: text.slice(end) });
  return found;
}

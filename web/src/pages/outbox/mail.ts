/** Addresses and measures of a mail's text. */
import type { ArchiveView, MailEdit, OutgoingMail } from "@/api/types";

/** Limits that the lab's own text keeps (docs/outbox.md); a reviewer may exceed them. */
export const MAIL_LINES = 60;
export const MAIL_COLUMNS = 72;
const TAB = 8;

export interface TextSize {
  lines: number;
  /** Columns of the longest line; a tab goes to the next multiple of eight. */
  columns: number;
  /** Numbers of the lines with more than MAIL_COLUMNS columns, from 1. */
  long: number[];
}

/** Measure a mail's text; the newline at its end does not begin another line. */
export function sizeOf(text: string): TextSize {
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
  const columns = lines.map(columnsOf);
  return {
    lines: text === "" ? 0 : lines.length,
    columns: Math.max(...columns),
    long: columns.flatMap((width, at) => (width > MAIL_COLUMNS ? [at + 1] : [])),
  };
}

function columnsOf(line: string): number {
  let at = 0;
  for (const character of line) at += character === "\t" ? TAB - (at % TAB) : 1;
  return at;
}

/** Parse addresses that are written one a line. */
export function addressesOf(text: string): string[] {
  return text
    .split("\n")
    .map(line => line.trim().replace(/,$/, ""))
    .filter(Boolean);
}

/** Return the fields of `mail` that `changed` has otherwise; the API leaves the others as they are. */
export function changesOf(mail: OutgoingMail, changed: Required<MailEdit>): MailEdit {
  const names = ["to", "cc", "subject", "body"] as const;
  const differing = names.filter(name => JSON.stringify(mail[name]) !== JSON.stringify(changed[name]));
  return Object.fromEntries(differing.map(name => [name, changed[name]]));
}

/**
 * Return the page of a message in the archive that most likely has it: that of a list among the recipients, else the
 * first archive of several lists. Null if the lab has no archive.
 */
export function archivePage(
  archives: readonly ArchiveView[],
  messageId: string,
  recipients: readonly string[],
): string | null {
  const hosts = recipients.map(each => each.toLowerCase());
  const own = archives.find(({ list }) => list && hosts.some(each => each.includes(list.toLowerCase())));
  const archive = own ?? archives.find(({ list }) => !list) ?? archives[0];
  return archive ? archive.url.replace("{message_id}", encodeId(messageId)) : null;
}

/** Escape a Message-ID as the server does: readable, and safe in a path. */
function encodeId(id: string): string {
  return encodeURIComponent(id).replace(/%(40|2B|3D|24|26|2C|3A|3B)/g, decodeURIComponent);
}

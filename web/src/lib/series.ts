/** Recognise what a person pastes as a series. */

/** The fields of the form that a pasted text fills. */
export type Recognised = { source: "thread"; message: string } | { source: "git"; git: string; ref: string };

/** A series of a Patchwork: its number, or a URL of its page, mbox or REST resource. */
export const SERIES =
  /^(?:[1-9]\d{0,8}|https?:\/\/\S+?(?:\/series\/[1-9]\d{0,8}(?:\/mbox)?\/?|\/list\/?\?(?:\S*&)?series=[1-9]\d{0,8}(?:&\S*)?))$/;

/** A mail's address in an archive, such as `https://lore.kernel.org/r/<Message-ID>`, or a bare Message-ID. */
const MESSAGE = /^(?:<?[^\s<>/@]+@[^\s<>/@]+>?|https?:\/\/\S*\/[^\s/@]+(?:@|%40)[^\s/@]+(?:\/\S*)?)$/;

/**
 * Return what a text names: a Message-ID or the URL of a mail, or a series of a Patchwork; else the URL of a repository, with a branch behind a
 * space or `#`.
 */
export function recogniseSeries(text: string): Recognised {
  const typed = text.trim();
  if (MESSAGE.test(typed) || SERIES.test(typed)) return { source: "thread", message: typed };
  const [git = "", ref = ""] = typed.split(/[\s#]+/);
  return { source: "git", git, ref };
}

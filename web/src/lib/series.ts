/** Recognise what a person pastes as a series. */

/** The fields of the form that a pasted text fills. */
export type Recognised = { source: "thread"; message: string } | { source: "git"; git: string; ref: string };

/** A mail's address in an archive, such as `https://lore.kernel.org/r/<Message-ID>`, or a bare Message-ID. */
const MESSAGE = /^(?:<?[^\s<>/@]+@[^\s<>/@]+>?|https?:\/\/\S*\/[^\s/@]+(?:@|%40)[^\s/@]+(?:\/\S*)?)$/;

/**
 * Return what a text names: a Message-ID or the URL of a mail; else the URL of a repository, with a branch behind a
 * space or `#`.
 */
export function recogniseSeries(text: string): Recognised {
  const typed = text.trim();
  if (MESSAGE.test(typed)) return { source: "thread", message: typed };
  const [git = "", ref = ""] = typed.split(/[\s#]+/);
  return { source: "git", git, ref };
}

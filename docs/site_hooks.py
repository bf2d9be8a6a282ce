"""MkDocs hooks: publish pages that live outside docs/, and rewrite links between them.

README.md, CONTRIBUTING.md and others stay where readers of the repository look for them. The site shows them too, so
their relative links are rewritten to the addresses of the site. A link to a file that is neither a page nor a file of
docs/ is reported, and `strict` makes that an error.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.links")

REPOSITORY_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "vulnerabilities.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "kernels/modules/README.md": "kernel-modules.md",
}
"""File of the repository -> page of the site."""

_MARKDOWN_LINK = re.compile(r"(\]\()([^)\s#]+)([^)]*\))")
_HTML_LINK = re.compile(r"""((?:src|srcset|href)=")([^"#]+)([^"]*")""")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of REPOSITORY_PAGES to the site."""
    root = Path(config.docs_dir).parent
    for source, page in REPOSITORY_PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(root / source)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with its links to files of the repository turned into links of the site."""
    root = Path(config.docs_dir).parent
    uri = page.file.src_uri
    source = next((name for name, shown in REPOSITORY_PAGES.items() if shown == uri), f"docs/{uri}")

    def rewritten(match: re.Match[str], *, is_html: bool) -> str:
        before, link, after = match.groups()
        if "://" in link or link.startswith(("/", "mailto:")):
            return match.group(0)
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        place = REPOSITORY_PAGES.get(target) or target.removeprefix("docs/")
        if target == "docs" or (root / target).is_dir():
            place = posixpath.join(place, "README.md") if f"{place}/README.md" in files.src_uris else place
        if place not in files.src_uris:
            log.warning("%s links to %s, which is neither a page nor a file of docs/", source, target)
            return match.group(0)
        if is_html:  # MkDocs does not resolve links in HTML: give the address relative to this page's own
            relative = files.src_uris[place].url_relative_to(page.file)
        else:
            relative = posixpath.relpath(place, posixpath.dirname(uri) or ".")
        return f"{before}{relative}{after}"

    def of_text(text: str) -> str:
        text = _MARKDOWN_LINK.sub(lambda match: rewritten(match, is_html=False), text)
        return _HTML_LINK.sub(lambda match: rewritten(match, is_html=True), text)

    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if index % 2 else of_text(part) for index, part in enumerate(parts))


def on_page_content(html: str, **_: Any) -> str:
    """Return the page with code blocks and tables that scroll by keyboard."""
    return re.sub(r"<(pre|table)>", r'<\1 tabindex="0">', html)


def on_env(env: Any, *, config: MkDocsConfig, files: Files) -> Any:
    """Jinja escapes titles and addresses in the theme."""
    env.autoescape = True
    return env

"""Write the page of a report: the application's index.html, with the first screen and the report's data in it.

The first screen can be read before any script is loaded, or without scripts. The application replaces it by the same
elements, and reads the report from the page instead of requesting it.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from wqlab_contracts.api.report import Report
from wqlab_report.units import readable
from wqlab_report.writers.first_screen import clean, first_screen, title
from wqlab_report.writers.text import render_text

_ENTRY = "src/pages/report/ReportPage.tsx"
"""The module of the application with the page, as the manifest of its build names it."""
_WITHOUT_PAGES = (
    '<!doctype html>\n<html lang="en">\n<head><title>wqlab</title></head>\n<body><!--page--></body>\n</html>\n'
)
"""The page of a lab whose web pages are not built."""


def render_page(report: Report, web_dir: Path | None) -> str:
    """Return the page of a report. `web_dir`: folder of the application's build, as in Settings.web_dir."""
    text = render_text(report)
    data = f'{{"report":{readable(report).model_dump_json(by_alias=True)},"text":{json.dumps(text)}}}'
    name = f"Report {report.submission.id}: {title(report)} · wqlab"
    parts = (
        f'<article class="report"><div class="report-first">{first_screen(report, page=True)}</div>',
        f'<noscript><h2>Plain text</h2><pre class="report-text">{escape(clean(text))}</pre></noscript></article>',
        # A data block, which no browser executes. `<` would end it, or begin a comment.
        f'<script type="application/json" id="report">{data.replace("<", chr(92) + "u003c")}</script>',
    )
    index, links = _WITHOUT_PAGES, ""
    if web_dir is not None and (web_dir / "index.html").is_file():
        index, links = (web_dir / "index.html").read_text(), _links(web_dir)
    before, _, after = index.partition("<!--page-->")
    head = re.sub("<title>.*?</title>", lambda _: f"<title>{escape(clean(name))}</title>{links}", before, count=1)
    return f"{head}{''.join(parts)}{after}"


def _links(web_dir: Path) -> str:
    """Return links to the files that only this page of the application needs, so that browsers load them at once."""
    manifest = json.loads((web_dir / ".vite/manifest.json").read_text())
    shared, own = _chunks(manifest, "index.html"), _chunks(manifest, _ENTRY)
    added = [manifest[name] for name in own if name not in shared]
    styles = dict.fromkeys(file for chunk in added for file in chunk.get("css", ()))
    scripts = (f'<link rel="modulepreload" href="/{chunk["file"]}">' for chunk in added)
    return "".join([*(f'<link rel="stylesheet" href="/{file}">' for file in styles), *scripts])


def _chunks(manifest: dict[str, dict[str, Any]], name: str) -> list[str]:
    """Return a chunk of the build and all that it imports, each once."""
    found = [name]
    for each in found:
        found += [other for other in manifest[each].get("imports", ()) if other not in found]
    return found

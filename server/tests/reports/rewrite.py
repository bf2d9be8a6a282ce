"""Rewrite the golden files. Read the diff before you commit it.

kept/*.json must not be changed: labs have stored such reports and must be able to read them.
"""

from report_examples import EXAMPLES  # type: ignore[import-not-found]  # run as a script

from wqlab_contracts.api.report import Report
from wqlab_server.reports.render.mmtests import render_mmtests
from wqlab_server.reports.render.text import render_text

if __name__ == "__main__":
    from pathlib import Path

    here = Path(__file__).parent
    for name, make in EXAMPLES.items():
        (here / "golden" / f"{name}.txt").write_text(render_text(make()))
        (here / "golden" / f"{name}.mmtests").write_text(render_mmtests(make()))
    for kept in (here / "kept").glob("*.json"):
        kept.with_suffix(".txt").write_text(render_text(Report.model_validate_json(kept.read_text())))

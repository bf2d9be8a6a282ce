"""Rewrite the golden files. Read the diff before you commit it.

kept/*.json must not be changed: labs have stored such reports and must be able to read them.
"""

import sys
from importlib import import_module
from pathlib import Path

from wqlab_contracts.api.report import Report
from wqlab_server.reports.render.kcidb import Sender, render_kcidb
from wqlab_server.reports.render.mmtests import render_mmtests
from wqlab_server.reports.render.text import render_text

if __name__ == "__main__":
    here = Path(__file__).parent
    sys.path.insert(0, str(here.parents[1]))
    examples = import_module("tests.reports.all_examples").EXAMPLES
    failed = import_module("tests.reports.failed_examples").FAILED
    for name, make in (examples | failed).items():
        (here / "golden" / f"{name}.txt").write_text(render_text(make()))
        (here / "golden" / f"{name}.kcidb.json").write_text(render_kcidb(make(), Sender("wqlab_test")))
    for name, make in examples.items():
        (here / "golden" / f"{name}.mmtests").write_text(render_mmtests(make()))
    for kept in (here / "kept").glob("*.json"):
        kept.with_suffix(".txt").write_text(render_text(Report.model_validate_json(kept.read_text())))
